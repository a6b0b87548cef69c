//! The Lambda shell: one invocation, from the event to the answer.
//!
//! No state lives here between invocations except clients, so several may run at once in one process.

use std::time::Duration;

use aws_lambda_events::sqs::SqsBatchResponse;
use tracing::Instrument;

mod hiding;

use self::hiding::{Calls, Hiding};

use crate::{
    backoff::Random,
    batch::{Batch, BatchResult, BatchRules},
    charge::Step,
    clock::{Clock, Timestamp},
    deadline::SPANS,
    event::{EventError, SqsEvent},
    metrics::Metrics,
    payload::Payloads,
    queue::Queue,
    report,
    response::{self, UnnamedFailure},
    spans::Spans,
    telemetry::ErrorChain,
    visibility::VisibilityRules,
};

/// Longest time that sending spans may add to an invocation.
const FLUSH: Duration = Duration::from_millis(200);

/// What an invocation runs on.
#[derive(Debug)]
pub struct Handler<S, Q> {
    /// What is done with an order.
    pub step: S,
    /// For visibility changes, and for poison that is moved.
    pub queue: Q,
    /// Where bodies lie that were too large for a message.
    pub payloads: Payloads,
    /// How a batch runs.
    pub batch: BatchRules,
    /// How long failed messages wait.
    pub visibility: VisibilityRules,
    /// Where visibility changes go, if not to the queue of the event's ARN.
    pub queue_url: Option<String>,
    /// The metrics' `service`.
    pub service: String,
    /// Takes what an invocation may last if the deadline is not known.
    pub default_timeout: Duration,
    /// Time.
    pub clock: Clock,
    /// Chance.
    pub random: Random,
    /// Where the metrics line goes.
    pub emit: fn(&str),
    /// Where the records' spans go.
    pub spans: Spans,
}

/// Why an invocation fails as a whole; its batch then comes again as a whole.
#[derive(Debug, thiserror::Error)]
pub enum InvocationError {
    /// The event is no SQS batch.
    #[error(transparent)]
    Event(EventError),
    /// A failed record cannot be listed.
    #[error(transparent)]
    Unnamed(UnnamedFailure),
}

impl From<InvocationError> for lambda_runtime::Diagnostic {
    fn from(error: InvocationError) -> Self {
        let kind = match error {
            InvocationError::Event(_) => "NotAnSqsEvent",
            InvocationError::Unnamed(_) => "UnnamedFailure",
        };
        Self { error_type: kind.to_owned(), error_message: error.to_string() }
    }
}

impl<S: Step, Q: Queue> Handler<S, Q> {
    /// Works on one event. `deadline_millis` is the epoch at which Lambda stops the invocation.
    ///
    /// # Errors
    /// The event is no SQS batch, or a record failed that cannot be listed.
    pub async fn handle(
        &self,
        event: SqsEvent,
        deadline_millis: u64,
        request_id: &str,
    ) -> Result<SqsBatchResponse, InvocationError> {
        let span = tracing::info_span!("invocation", request_id);
        let deadline = self.deadline(deadline_millis);
        let work = async {
            let answer = self.answer(event, deadline, request_id).await;
            // Lambda freezes the process after the answer, so nothing may be on its way then.
            self.spans.flush(FLUSH.min(deadline.minus(SPANS).since(self.clock.now()))).await;
            answer
        };
        work.instrument(span).await
    }

    async fn answer(
        &self,
        event: SqsEvent,
        deadline: Timestamp,
        request_id: &str,
    ) -> Result<SqsBatchResponse, InvocationError> {
        let records = event.0.map_err(|error| {
            tracing::error!(error = %ErrorChain(&error), "the invocation is refused, nothing was charged");
            InvocationError::Event(error)
        })?;
        let queue = records.iter().find_map(|record| record.queue.clone());
        let Self { step, queue: dlq, payloads, batch: rules, clock, .. } = self;
        let batch = Batch { step, queue: dlq, payloads, rules, clock, deadline };
        let url = self.queue_url.clone().or_else(|| queue.as_ref().and_then(|queue| queue.url()));
        let (hiding, changes) = Hiding::new(&self.visibility, &self.random, clock);
        let calls = Calls { queue: dlq, url: url.as_deref(), clock, deadline };
        let work = async {
            // Moved in, because the changes end with it.
            let hiding = hiding;
            batch.run_paced(records, &hiding).await
        };
        let (result, failures) = tokio::join!(work, calls.make(changes));
        self.report(&result, failures, queue.as_ref().map(|queue| queue.name()), request_id);
        response::answer(&result.judged).map_err(|error| {
            tracing::error!(error = %ErrorChain(&error), "the invocation is failed on purpose");
            InvocationError::Unnamed(error)
        })
    }

    /// Local emulators send 0 or a duration instead of an epoch; both mean that the deadline is not known.
    fn deadline(&self, millis: u64) -> Timestamp {
        let now = self.clock.now();
        let given = i64::try_from(millis).ok().map(Timestamp::from_millis);
        given.filter(|deadline| *deadline > now).unwrap_or_else(|| now.plus(self.default_timeout))
    }

    fn report(
        &self,
        result: &BatchResult,
        visibility_failures: usize,
        queue: Option<&str>,
        request_id: &str,
    ) {
        for judged in &result.judged {
            report::log(judged);
            self.spans.note(judged, Some(request_id));
        }
        if result.breaker_opened {
            tracing::warn!("the breaker opened: the rest of the batch was returned without being begun");
        }
        let now = self.clock.now();
        let metrics = Metrics::of(result, visibility_failures, now);
        (self.emit)(&metrics.to_emf(&self.service, queue, request_id, now));
    }
}
