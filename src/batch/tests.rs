mod pointers;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use proptest::prelude::*;
use tokio::sync::Semaphore;

use super::*;
use crate::{
    decision::Code,
    queue::{EntryError, EntryResult, Message, QueueError, Receive, VisibilityChange},
    record::{MessageGroupId, MessageId, QueueArn, ReceiptHandle},
};

const DEADLINE: Timestamp = Timestamp::from_millis(100_000);

/// Decides by the order's identifier and writes down what it was given, in order.
#[derive(Default)]
struct Script {
    seen: Mutex<Vec<String>>,
    gate: Option<Arc<Semaphore>>,
}

impl Script {
    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Step for Script {
    async fn run(&self, order: &Order, _delivery: &Delivery) -> Outcome {
        let id = order.id().as_str().to_owned();
        self.seen.lock().unwrap().push(id.clone());
        if let Some(gate) = &self.gate {
            let _permit = gate.acquire().await.unwrap();
        }
        let health = |health| Facts { health, ..Facts::default() };
        let retry = || Decision::retry(RetryReason::Store);
        match id.split('-').next().unwrap() {
            "good" => Outcome::of(Decision::Ack(AckReason::Charged)),
            "bad" => Outcome::of(Decision::Poison(PoisonReason::Declined(Code::new("card_declined")))),
            "down" => Outcome { decision: retry(), facts: health(Health::Failing) },
            "silent" => {
                let facts = Facts { provider_time: Some(Duration::from_secs(1)), ..health(Health::Failing) };
                Outcome { decision: retry(), facts }
            }
            "stop" => Outcome { decision: retry(), facts: health(Health::Stop) },
            "known" => Outcome::of(Decision::Ack(AckReason::Duplicate)),
            "hang" => std::future::pending().await,
            "panic" => panic!("the provider's client broke"),
            other => panic!("unknown {other}"),
        }
    }
}

/// A dead-letter queue that takes everything, or nothing.
#[derive(Default)]
struct Dlq {
    sent: Mutex<Vec<Outgoing>>,
    refuses: bool,
}

impl Queue for Dlq {
    async fn receive(&self, _: &str, _: Receive) -> Result<Vec<Message>, QueueError> {
        unreachable!("a batch does not receive")
    }
    async fn delete(&self, _: &str, _: &[ReceiptHandle]) -> Result<Vec<EntryResult>, QueueError> {
        unreachable!("a batch does not delete")
    }
    async fn change_visibility(
        &self,
        _: &str,
        _: &[VisibilityChange],
    ) -> Result<Vec<EntryResult>, QueueError> {
        unreachable!("a batch does not hide")
    }
    async fn send(&self, _: &str, messages: &[Outgoing]) -> Result<Vec<EntryResult<MessageId>>, QueueError> {
        if self.refuses {
            let error = EntryError { code: "AccessDenied".into(), message: "no".into() };
            return Ok(vec![Err(error)]);
        }
        self.sent.lock().unwrap().extend(messages.to_vec());
        Ok(vec![Ok(MessageId::new("new").unwrap())])
    }
}

fn rules() -> BatchRules {
    BatchRules {
        concurrency: 10,
        time_to_begin: Duration::from_secs(12),
        order: OrderRules { default_currency: None, max_amount_minor: 99_999_999 },
        move_poison_to: None,
    }
}

fn record(position: usize, order: &str, group: Option<&str>, fifo: bool) -> Record {
    let body = format!(r#"{{"order_id":"{order}","amount":1,"currency":"EUR"}}"#);
    let name = if fifo { "orders.fifo" } else { "orders" };
    Record {
        message_id: MessageId::new(format!("m-{position}")),
        receipt_handle: ReceiptHandle::new(format!("rh-{position}")),
        queue: QueueArn::parse(&format!("arn:aws:sqs:eu-west-1:1:{name}")).map(Arc::new),
        group: group.and_then(MessageGroupId::new),
        deduplication_id: fifo.then(|| format!("d-{position}")),
        body: Ok(if order == "malformed" { "not json".to_owned() } else { body }),
        ..Record::unusable(position)
    }
}

fn standard(orders: &[&str]) -> Vec<Record> {
    orders.iter().enumerate().map(|(position, order)| record(position, order, None, false)).collect()
}

fn fifo(orders: &[(&str, Option<&str>)]) -> Vec<Record> {
    orders
        .iter()
        .enumerate()
        .map(|(position, (order, group))| record(position, order, *group, true))
        .collect()
}

async fn run_with(
    step: &Script,
    dlq: &Dlq,
    rules: &BatchRules,
    records: Vec<Record>,
    now: i64,
) -> BatchResult {
    let clock = Clock::from_fn(move || Timestamp::from_millis(now));
    let payloads = &Payloads::none();
    Batch { step, queue: dlq, payloads, rules, clock: &clock, deadline: DEADLINE }.run(records).await
}

async fn run(step: &Script, records: Vec<Record>) -> Vec<String> {
    reasons(&run_with(step, &Dlq::default(), &rules(), records, 0).await)
}

fn reasons(result: &BatchResult) -> Vec<String> {
    result.judged.iter().map(|judged| judged.outcome.decision.reason()).collect()
}

#[tokio::test]
async fn a_malformed_record_fails_alone() {
    let step = Script::default();
    let reasons = run(&step, standard(&["good-1", "malformed", "good-2"])).await;
    assert_eq!(reasons, ["CHARGED", "BODY_NOT_JSON", "CHARGED"]);
}

#[tokio::test]
async fn a_panic_is_a_retry_of_its_record_alone() {
    let records = standard(&["good-1", "panic-1", "good-2"]);
    let result = run_with(&Script::default(), &Dlq::default(), &rules(), records, 0).await;
    assert_eq!(reasons(&result), ["CHARGED", "PANICKED", "CHARGED"]);
    assert_eq!(result.judged[1].outcome.facts.error.as_deref(), Some("panic: the provider's client broke"));
}

#[tokio::test]
async fn two_messages_of_one_order_run_one_after_the_other() {
    let step = Script { gate: Some(Arc::new(Semaphore::new(0))), ..Script::default() };
    let (queue, rules) = (Dlq::default(), rules());
    let batch = run_with(&step, &queue, &rules, standard(&["good-1", "good-1", "good-2"]), 0);
    tokio::pin!(batch);
    assert!(batch.as_mut().now_or_never().is_none());
    assert_eq!(step.seen(), ["good-1", "good-2"], "the second message of good-1 waits for the first");
    step.gate.as_ref().unwrap().add_permits(9);
    assert_eq!(reasons(&batch.await), ["CHARGED"; 3]);
    assert_eq!(step.seen().len(), 3);
}

#[tokio::test]
async fn no_more_lanes_run_at_once_than_allowed() {
    let step = Script { gate: Some(Arc::new(Semaphore::new(0))), ..Script::default() };
    let (queue, rules) = (Dlq::default(), BatchRules { concurrency: 3, ..rules() });
    let orders: Vec<String> = (0..20).map(|n| format!("good-{n}")).collect();
    let orders: Vec<&str> = orders.iter().map(String::as_str).collect();
    let batch = run_with(&step, &queue, &rules, standard(&orders), 0);
    tokio::pin!(batch);
    assert!(batch.as_mut().now_or_never().is_none());
    assert_eq!(step.seen().len(), 3);
    step.gate.as_ref().unwrap().add_permits(99);
    assert_eq!(batch.await.judged.len(), 20);
}

#[tokio::test]
async fn a_failure_in_a_fifo_group_ends_that_group_only() {
    let step = Script::default();
    let records = fifo(&[
        ("good-1", Some("a")),
        ("malformed", Some("a")),
        ("good-2", Some("a")),
        ("bad-1", Some("b")),
        ("good-3", Some("b")),
        ("good-4", Some("c")),
    ]);
    let result = run_with(&step, &Dlq::default(), &rules(), records, 0).await;
    let expected = [
        "CHARGED",
        "BODY_NOT_JSON",
        "NOT_STARTED:GROUP",
        "DECLINED:card_declined",
        "NOT_STARTED:GROUP",
        "CHARGED",
    ];
    assert_eq!(reasons(&result), expected);
    let behind: Vec<_> = result.judged.iter().map(|judged| judged.behind).collect();
    assert_eq!(behind, [None, None, Some(1), None, Some(3), None]);
    let seen: HashSet<String> = step.seen().into_iter().collect();
    assert_eq!(seen, ["good-1", "bad-1", "good-4"].map(String::from).into());
}

#[tokio::test]
async fn a_fifo_record_without_a_group_is_its_own_lane() {
    let reasons =
        run(&Script::default(), fifo(&[("bad-1", None), ("good-1", None), ("good-2", Some("a"))])).await;
    assert_eq!(reasons, ["DECLINED:card_declined", "CHARGED", "CHARGED"]);
}

#[tokio::test]
async fn a_group_on_a_standard_queue_means_nothing() {
    let mut records = standard(&["malformed", "bad-1", "good-1"]);
    for record in &mut records {
        record.group = MessageGroupId::new("tenant");
    }
    let reasons = run(&Script::default(), records).await;
    assert_eq!(reasons, ["BODY_NOT_JSON", "DECLINED:card_declined", "CHARGED"]);
}

#[tokio::test]
async fn nothing_is_begun_without_time_for_a_charge() {
    let step = Script::default();
    let latest = DEADLINE.as_millis() - 12_000;
    let (dlq, rules) = (Dlq::default(), rules());
    let at = |now| run_with(&step, &dlq, &rules, standard(&["good-1", "malformed"]), now);
    assert_eq!(reasons(&at(latest).await), ["CHARGED", "BODY_NOT_JSON"]);
    assert_eq!(reasons(&at(latest + 1).await), ["NOT_STARTED:DEADLINE", "BODY_NOT_JSON"]);
    assert_eq!(reasons(&at(DEADLINE.as_millis() + 5).await), ["NOT_STARTED:DEADLINE", "BODY_NOT_JSON"]);
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_dropped_before_the_deadline() {
    assert_eq!(run(&Script::default(), standard(&["hang-1", "good-1"])).await, ["UNFINISHED", "CHARGED"]);
}

#[tokio::test]
async fn three_failures_in_a_row_open_the_breaker() {
    let one_at_a_time = BatchRules { concurrency: 1, ..rules() };
    let run = |orders| {
        let rules = one_at_a_time.clone();
        async move { run_with(&Script::default(), &Dlq::default(), &rules, standard(orders), 0).await }
    };
    let opened = run(&["down-1", "down-2", "down-3", "good-1"]).await;
    assert_eq!(reasons(&opened)[3], "NOT_STARTED:BREAKER");
    assert!(opened.breaker_opened);
    // What the ledger alone knows says nothing about the provider.
    let between = run(&["silent-1", "known-1", "silent-2", "known-2", "silent-3", "good-1"]).await;
    assert_eq!(reasons(&between)[5], "NOT_STARTED:BREAKER");
    let ledger = run(&["down-1", "known-1", "down-2", "known-2", "down-3", "good-1"]).await;
    assert_eq!(reasons(&ledger)[5], "CHARGED");
    let healed = run(&["down-1", "down-2", "good-1", "down-3", "down-4", "good-2"]).await;
    assert_eq!(reasons(&healed)[5], "CHARGED");
    assert!(!healed.breaker_opened);
    let stopped = run(&["stop-1", "good-1", "malformed"]).await;
    assert_eq!(reasons(&stopped)[1..], ["NOT_STARTED:BREAKER", "BODY_NOT_JSON"]);
}

#[tokio::test]
async fn poison_is_moved_with_its_reason_and_its_group_goes_on() {
    let dlq = Dlq::default();
    let rules = BatchRules { move_poison_to: Some("https://dlq".into()), ..rules() };
    let mut records = fifo(&[("malformed", Some("a")), ("good-1", Some("a"))]);
    let attribute =
        |n: usize| TextAttribute { name: format!("a{n}"), data_type: "String".into(), value: "v".into() };
    records[0].attributes = (0..10).map(attribute).collect();
    records[0].sent_at = Some(Timestamp::from_millis(1_000));
    let result = run_with(&Script::default(), &dlq, &rules, records, 0).await;
    assert_eq!(reasons(&result), ["MOVED_TO_DLQ:BODY_NOT_JSON", "CHARGED"]);
    let sent = dlq.sent.lock().unwrap();
    let named = |name: &str| sent[0].attributes.iter().find(|a| a.name == name).map(|a| a.value.as_str());
    assert_eq!((named("reason"), named("original_message_id")), (Some("BODY_NOT_JSON"), Some("m-0")));
    assert_eq!((sent[0].attributes.len(), sent[0].body.as_str()), (10, "not json"));
    assert_eq!(
        sent[0].deduplication_id.as_deref(),
        Some("m-0"),
        "unique for the message, so nothing swallows it"
    );
    assert_eq!(named("original_deduplication_id"), Some("d-0"));
    assert_eq!(named("original_sent_at"), Some("1000"), "the copy is as old as the message");
    assert_eq!(sent[0].group, MessageGroupId::new("a"));
}

#[tokio::test]
async fn poison_that_cannot_be_moved_stays() {
    let dlq = Dlq { refuses: true, ..Dlq::default() };
    let rules = BatchRules { move_poison_to: Some("https://dlq".into()), ..rules() };
    let records = fifo(&[("bad-1", Some("a")), ("good-1", Some("a"))]);
    let result = run_with(&Script::default(), &dlq, &rules, records, 0).await;
    assert_eq!(reasons(&result), ["DECLINED:card_declined", "NOT_STARTED:GROUP"]);
}

#[tokio::test]
async fn poison_is_never_moved_to_where_it_came_from() {
    let dlq = Dlq::default();
    let own = "https://sqs.eu-west-1.amazonaws.com/1/orders.fifo";
    let rules = BatchRules { move_poison_to: Some(own.into()), ..rules() };
    let result = run_with(&Script::default(), &dlq, &rules, fifo(&[("malformed", Some("a"))]), 0).await;
    assert_eq!((reasons(&result), dlq.sent.lock().unwrap().len()), (vec!["BODY_NOT_JSON".to_owned()], 0));
}

proptest! {
    #[test]
    fn every_record_is_in_one_lane_once_and_keeps_its_order(
        shape in prop::collection::vec((0_u8..4, prop::option::of(0_u8..3), any::<bool>()), 0..40)
    ) {
        let records = shape.iter().enumerate().map(|(position, (order, group, malformed))| {
            let order = if *malformed { "malformed".to_owned() } else { format!("good-{order}") };
            let fifo = group.is_some();
            record(position, &order, group.map(|group| format!("g{group}")).as_deref(), fifo)
        });
        let rules = rules();
        let parsed = records.map(|record| {
            let order = read::parse(record.body.as_deref().unwrap(), &rules.order);
            Parsed { record, order }
        });
        let lanes = parsed.fold(Lanes::default(), Lanes::with).into_vec();
        let positions: Vec<Vec<usize>> =
            lanes.iter().map(|lane| lane.iter().map(|parsed| parsed.record.position).collect()).collect();
        prop_assert!(positions.iter().all(|lane| lane.is_sorted()));
        let mut all: Vec<usize> = positions.concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..shape.len()).collect::<Vec<_>>());
        for lane in &lanes {
            let key = |parsed: &Parsed| match parsed.record.is_fifo() {
                true => parsed.record.group.as_ref().map(ToString::to_string),
                false => parsed.order.as_ref().ok().map(|order| order.id().to_string()),
            };
            prop_assert!(lane.iter().all(|parsed| key(parsed) == key(&lane[0])));
            let same = lanes.iter().filter(|other| {
                key(&lane[0]).is_some()
                    && key(&other[0]) == key(&lane[0])
                    && other[0].record.is_fifo() == lane[0].record.is_fifo()
            });
            prop_assert!(same.count() <= 1, "one order or group in two lanes would run side by side");
        }
    }

    #[test]
    fn every_record_is_judged_once_whatever_its_neighbours_run_into(
        shape in prop::collection::vec((0_usize..7, prop::option::of(0_u8..3), any::<bool>()), 0..25),
        concurrency in 1_usize..6,
    ) {
        const FATES: [&str; 7] = ["good", "bad", "down", "stop", "hang", "panic", "malformed"];
        let records: Vec<Record> = shape.iter().enumerate().map(|(position, (fate, group, fifo))| {
            let order = if FATES[*fate] == "malformed" { "malformed".into() } else { format!("{}-{position}", FATES[*fate]) };
            record(position, &order, group.map(|group| format!("g{group}")).as_deref(), *fifo)
        }).collect();
        let rules = BatchRules { concurrency, ..rules() };
        let (step, dlq) = (Script::default(), Dlq::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let result = runtime.block_on(run_with(&step, &dlq, &rules, records, 0));
        let positions: Vec<usize> = result.judged.iter().map(|judged| judged.record.position).collect();
        prop_assert_eq!(positions, (0..shape.len()).collect::<Vec<_>>());
        let seen = step.seen();
        let once: HashSet<&String> = seen.iter().collect();
        prop_assert_eq!(once.len(), seen.len(), "an order was begun twice");
        // On FIFO queues nothing of a group is acknowledged behind a failure.
        let mut ended = HashSet::new();
        for judged in result.judged.iter().filter(|judged| judged.record.is_fifo() && judged.record.group.is_some()) {
            let ack = judged.outcome.decision.is_ack();
            prop_assert!(!ack || !ended.contains(&judged.record.group));
            if !ack {
                ended.insert(judged.record.group.clone());
            }
        }
    }
}
