//! What the conformance suite cannot see from outside: waking, dead letters on their way back, speed.

#![expect(clippy::arithmetic_side_effects, reason = "tests")]

use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::{clock::Timestamp, queue::conformance, record::MessageGroupId};

/// Queues on a clock that only the test moves.
struct Driven {
    queues: MemoryQueues,
    now: Arc<AtomicI64>,
}

impl Driven {
    fn new() -> Self {
        let now = Arc::new(AtomicI64::new(1_700_000_000_000));
        let read = Arc::clone(&now);
        let clock = Clock::from_fn(move || Timestamp::from_millis(read.load(Ordering::SeqCst)));
        Self { queues: MemoryQueues::new(clock, Random::seeded(1)), now }
    }

    fn advance(&self, time: Duration) {
        self.now.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl conformance::Fixture for Driven {
    type Queue = MemoryQueues;
    const LONGEST_PASS: Duration = Duration::MAX;

    fn queue(&self) -> &MemoryQueues {
        &self.queues
    }

    async fn create(&self, name: &str, attributes: &[(&str, &str)]) -> (String, String) {
        let attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.queues.create(name, QueueSettings::from_attributes(&attributes).unwrap()).unwrap();
        (name.to_owned(), MemoryQueues::arn(name))
    }

    async fn pass(&self, time: Duration) {
        self.advance(time);
    }
}

fn text(body: impl Into<String>) -> Outgoing {
    Outgoing { body: body.into(), ..Outgoing::default() }
}

fn now_or_never(max_messages: u8, visibility: u64) -> Receive {
    Receive { max_messages, wait: Duration::ZERO, visibility: Some(Duration::from_secs(visibility)) }
}

#[tokio::test(start_paused = true)]
async fn conforms() {
    let left_out = conformance::run(&Driven::new()).await;
    assert!(left_out.is_empty(), "{left_out:?}");
}

/// Queues whose clock follows tokio's paused time.
fn paused() -> MemoryQueues {
    let start = Instant::now();
    let clock = Clock::from_fn(move || Timestamp::from_millis(0).plus(start.elapsed()));
    MemoryQueues::new(clock, Random::seeded(1))
}

#[tokio::test(start_paused = true)]
async fn a_waiting_receive_wakes_for_whatever_makes_a_message_visible() {
    let queues = paused();
    queues.create("q", QueueSettings::standard()).unwrap();
    let wait = Receive { wait: Duration::from_secs(20), ..now_or_never(1, 5) };
    let started = Instant::now();
    let elapsed = || started.elapsed().as_millis();

    queues.send_one("q", Outgoing { delay: Duration::from_secs(3), ..text("1") }).unwrap();
    queues.receive_from("q", wait).await.unwrap();
    assert_eq!(elapsed(), 3_000, "the end of a delay");

    queues.receive_from("q", wait).await.unwrap();
    assert_eq!(elapsed(), 8_000, "the end of a timeout");

    let last = queues.receive_from("q", Receive { visibility: Some(Duration::from_secs(600)), ..wait });
    let message =
        VisibilityChange { receipt_handle: last.await.unwrap().remove(0).receipt_handle, seconds: 0 };
    let (received, changed) = tokio::join!(queues.receive_from("q", wait), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        queues.change_one("q", &message)
    });
    assert_eq!((received.unwrap().len(), changed), (1, Ok(())));
    assert_eq!(elapsed(), 15_000, "a hand-back, 2 s after the timeout of 5 s ended");

    queues.purge("q").unwrap();
    assert!(queues.receive_from("q", wait).await.unwrap().is_empty());
    assert_eq!(elapsed(), 35_000, "nothing, after the whole wait");
}

#[tokio::test(start_paused = true)]
async fn deleting_the_head_wakes_the_receive_that_waits_for_its_group() {
    let queues = paused();
    queues.create("q.fifo", QueueSettings::fifo()).unwrap();
    for body in ["1", "2"] {
        let group = MessageGroupId::new("g");
        let message = Outgoing { group, deduplication_id: Some(body.to_owned()), ..text(body) };
        queues.send_one("q.fifo", message).unwrap();
    }
    let wait = Receive { wait: Duration::from_secs(20), ..now_or_never(1, 600) };
    let head = queues.receive_from("q.fifo", wait).await.unwrap().remove(0);
    let started = Instant::now();
    let (received, ()) = tokio::join!(queues.receive_from("q.fifo", wait), async {
        queues.delete_one("q.fifo", &head.receipt_handle).unwrap();
    });
    assert_eq!(received.unwrap()[0].body, "2");
    assert_eq!(started.elapsed(), Duration::ZERO);
}

/// A queue with a dead-letter queue that holds `count` messages from it.
async fn with_dead_letters(driven: &Driven, count: u32) {
    driven.queues.create("dead", QueueSettings::standard()).unwrap();
    let redrive = RedrivePolicy { dead_letter_queue: MemoryQueues::arn("dead"), max_receive_count: 1 };
    let settings = QueueSettings { redrive: Some(redrive), ..QueueSettings::standard() };
    driven.queues.create("live", settings).unwrap();
    for n in 0..count {
        driven.queues.send_one("live", text(n.to_string())).unwrap();
    }
    while !driven.queues.receive_from("live", now_or_never(10, 0)).await.unwrap().is_empty() {}
    assert_eq!(driven.queues.depth("dead").unwrap().visible, usize::try_from(count).unwrap());
}

#[tokio::test]
async fn a_move_task_brings_dead_letters_back_at_its_rate() {
    let driven = Driven::new();
    with_dead_letters(&driven, 25).await;
    let queues = &driven.queues;
    let handle = queues.start_move("dead", None, Some(10)).unwrap();
    assert_eq!(queues.start_move("dead", None, None).unwrap_err().code(), "UnsupportedOperation");
    driven.advance(Duration::from_millis(1_000));
    assert_eq!(queues.depth("live").unwrap().visible, 11);
    let first = queues.receive_from("live", now_or_never(1, 0)).await.unwrap().remove(0);
    assert_eq!(
        (first.body.as_str(), first.system["ApproximateReceiveCount"].as_str()),
        ("0", "1"),
        "a new message"
    );

    assert_eq!(queues.cancel_move(&handle), Ok(11));
    driven.advance(Duration::from_secs(60));
    assert_eq!(queues.depth("dead").unwrap().visible, 14, "what is left stays");
    assert_eq!(queues.cancel_move(&handle).unwrap_err().code(), "ResourceNotFoundException");

    queues.start_move("dead", None, None).unwrap();
    let tasks = queues.moves("dead").unwrap();
    let states: Vec<_> = tasks.iter().map(|task| (task.status, task.moved, task.to_move)).collect();
    assert_eq!(states, [(MoveStatus::Completed, 14, 14), (MoveStatus::Cancelled, 11, 25)]);
}

#[tokio::test]
async fn a_message_sent_into_the_dead_letter_queue_needs_a_destination() {
    let driven = Driven::new();
    with_dead_letters(&driven, 0).await;
    let queues = &driven.queues;
    queues.send_one("dead", text("by hand")).unwrap();
    queues.start_move("dead", None, None).unwrap();
    assert_eq!(queues.moves("dead").unwrap()[0].status, MoveStatus::CouldNotDetermineMessageSource);
    queues.start_move("dead", Some("live"), None).unwrap();
    assert_eq!(queues.depth("live").unwrap().visible, 1);
    assert_eq!(queues.start_move("live", None, None).unwrap_err().code(), "InvalidParameterValue");
}

/// A move is no send: the deduplication that would swallow a message sent again within five minutes does not
/// apply to it.
#[tokio::test]
async fn a_move_task_keeps_group_and_order_and_is_not_deduplicated() {
    let queues = Driven::new().queues;
    queues.create("dead.fifo", QueueSettings::fifo()).unwrap();
    let redrive = RedrivePolicy { dead_letter_queue: MemoryQueues::arn("dead.fifo"), max_receive_count: 1 };
    queues.create("live.fifo", QueueSettings { redrive: Some(redrive), ..QueueSettings::fifo() }).unwrap();
    queues.create("other", QueueSettings::standard()).unwrap();
    for body in ["1", "2"] {
        let group = MessageGroupId::new("g");
        let message = Outgoing { group, deduplication_id: Some(body.to_owned()), ..text(body) };
        queues.send_one("live.fifo", message).unwrap();
    }
    let first = queues.receive_from("live.fifo", now_or_never(10, 0)).await.unwrap();
    assert!(queues.receive_from("live.fifo", now_or_never(10, 0)).await.unwrap().is_empty());
    assert_eq!(
        queues.start_move("dead.fifo", Some("other"), None).unwrap_err().code(),
        "InvalidParameterValue"
    );
    queues.start_move("dead.fifo", None, None).unwrap();
    let moved = queues.receive_from("live.fifo", now_or_never(10, 0)).await.unwrap();
    assert_eq!(moved.iter().map(|message| message.body.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    for (moved, first) in moved.iter().zip(&first) {
        assert_eq!(moved.system["MessageGroupId"], "g");
        assert_eq!(moved.system["MessageDeduplicationId"], first.id.as_str());
        assert_ne!(moved.id, first.id);
    }
}

#[tokio::test]
async fn a_standard_queue_hands_out_at_most_120_000_at_a_time() {
    let driven = Driven::new();
    let queues = &driven.queues;
    queues.create("q", QueueSettings::standard()).unwrap();
    for _ in 0..120_001 {
        queues.send_one("q", text("x")).unwrap();
    }
    let mut last = None;
    for _ in 0..12_000 {
        let batch = queues.receive_from("q", now_or_never(10, 600)).await.unwrap();
        assert_eq!(batch.len(), 10);
        last = batch.into_iter().last();
    }
    assert_eq!(queues.receive_from("q", now_or_never(10, 600)).await, Err(SqsError::OverLimit));
    queues.delete_one("q", &last.unwrap().receipt_handle).unwrap();
    assert_eq!(queues.receive_from("q", now_or_never(10, 600)).await.unwrap().len(), 1);
    driven.advance(Duration::from_secs(600));
    assert_eq!(queues.depth("q").unwrap(), Depth { visible: 120_000, in_flight: 0, delayed: 0 });
}

#[test]
fn a_queue_is_created_once_and_only_with_a_fitting_name() {
    let queues = Driven::new().queues;
    queues.create("q", QueueSettings::standard()).unwrap();
    queues.create("q", QueueSettings::standard()).unwrap();
    let other = QueueSettings { delay: Duration::from_secs(1), ..QueueSettings::standard() };
    assert_eq!(queues.create("q", other).unwrap_err().code(), "QueueNameExists");
    for (name, settings) in [
        ("a.fifo", QueueSettings::standard()),
        ("a", QueueSettings::fifo()),
        ("", QueueSettings::standard()),
        ("a b", QueueSettings::standard()),
    ] {
        assert_eq!(queues.create(name, settings).unwrap_err().code(), "InvalidParameterValue", "{name}");
    }
}

/// What a consumer does next.
#[derive(Clone, Debug)]
enum Act {
    Send { group: u8 },
    Receive { max: u8, visibility: u64 },
    Delete { which: usize },
    Hide { which: usize, seconds: u32 },
    Pass { seconds: u64 },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..4_u8).prop_map(|group| Act::Send { group }),
        4 => (1..=10_u8, 0..20_u64).prop_map(|(max, visibility)| Act::Receive { max, visibility }),
        3 => any::<usize>().prop_map(|which| Act::Delete { which }),
        2 => (any::<usize>(), 0..20_u32).prop_map(|(which, seconds)| Act::Hide { which, seconds }),
        2 => (0..10_u64).prop_map(|seconds| Act::Pass { seconds }),
    ];
    proptest::collection::vec(act, 1..120)
}

/// A FIFO queue and what the rules allow it to do next.
struct Model {
    driven: Driven,
    sent: u32,
    /// Undeleted bodies of each group in the order sent.
    groups: BTreeMap<String, Vec<String>>,
    /// Deliveries: group, body, handle, and when they end.
    in_flight: Vec<(String, String, ReceiptHandle, i64)>,
}

impl Model {
    fn now(&self) -> i64 {
        self.driven.now.load(Ordering::SeqCst)
    }

    fn step(&mut self, act: Act) {
        let now = self.now();
        self.in_flight.retain(|(.., until)| *until > now);
        let queues = self.driven.queues.clone();
        match act {
            Act::Send { group } => {
                self.sent += 1;
                let (group, body) = (group.to_string(), self.sent.to_string());
                let id = Some(body.clone());
                let message =
                    Outgoing { group: MessageGroupId::new(&group), deduplication_id: id, ..text(&body) };
                queues.send_one("q.fifo", message).unwrap();
                self.groups.entry(group).or_default().push(body);
            }
            Act::Receive { max, visibility } => self.receive(max, visibility),
            Act::Delete { which } if !self.in_flight.is_empty() => {
                let (group, body, handle, _) = self.in_flight.remove(which % self.in_flight.len());
                queues.delete_one("q.fifo", &handle).unwrap();
                self.groups.get_mut(&group).unwrap().retain(|other| *other != body);
            }
            Act::Hide { which, seconds } if !self.in_flight.is_empty() => {
                let place = which % self.in_flight.len();
                let (.., handle, until) = &mut self.in_flight[place];
                queues
                    .change_one("q.fifo", &VisibilityChange { receipt_handle: handle.clone(), seconds })
                    .unwrap();
                *until = now + i64::from(seconds) * 1000;
            }
            Act::Delete { .. } | Act::Hide { .. } => {}
            Act::Pass { seconds } => self.driven.advance(Duration::from_secs(seconds)),
        }
    }

    /// Nothing of a group in flight may be received; of the others the oldest first, without gaps.
    fn receive(&mut self, max: u8, visibility: u64) {
        let receive = self.driven.queues.receive_from("q.fifo", now_or_never(max, visibility));
        let received = futures_util::FutureExt::now_or_never(receive).unwrap().unwrap();
        let mut taken: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for message in &received {
            taken.entry(message.system["MessageGroupId"].clone()).or_default().push(message.body.clone());
        }
        for (group, bodies) in &taken {
            assert!(
                !self.in_flight.iter().any(|(busy, ..)| busy == group),
                "group {group} has one in flight"
            );
            assert!(self.groups[group].starts_with(bodies), "group {group} in order");
        }
        let free = |group: &&String| !self.in_flight.iter().any(|(busy, ..)| busy == *group);
        let possible: usize = self.groups.keys().filter(free).map(|group| self.groups[group].len()).sum();
        assert_eq!(received.len(), possible.min(max.into()), "as many as can be had");
        let until = self.now() + i64::try_from(visibility).unwrap() * 1000;
        for message in received {
            let group = message.system["MessageGroupId"].clone();
            self.in_flight.push((group, message.body, message.receipt_handle, until));
        }
    }
}

proptest! {
    #[test]
    fn a_fifo_queue_keeps_the_order_of_each_group(acts in acts()) {
        let driven = Driven::new();
        driven.queues.create("q.fifo", QueueSettings::fifo()).unwrap();
        let mut model = Model { driven, sent: 0, groups: BTreeMap::new(), in_flight: Vec::new() };
        for act in acts {
            model.step(act);
        }
    }
}
