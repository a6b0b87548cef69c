//! The event source mapping, each of them if the queue has more: what it deletes, and how hard it drives the function.

use super::{Rule, Trouble, trouble};
use crate::doctor::{Deployment, Mapping, Scaling};

pub(super) const RULES: &[Rule] = &[
    Rule::error("partial-responses", partial_responses),
    Rule::error("no-filter", no_filter),
    Rule::error("fifo-batch", fifo_batch),
    Rule::error("large-batch-window", large_batch_window),
    Rule::error("one-scaling-mode", one_scaling_mode),
    Rule::error("bounded-concurrency", bounded_concurrency),
    Rule::warning("events-counted", events_counted),
];

fn partial_responses(d: &Deployment) -> Option<Trouble> {
    trouble(
        d.mappings().any(|mapping| mapping.response_types != ["ReportBatchItemFailures"]),
        "Lambda ignores the list of failures and deletes every order of the batch, charged or not",
        "set FunctionResponseTypes: [ReportBatchItemFailures]; aws lambda update-event-source-mapping --uuid ID \
         --function-response-types ReportBatchItemFailures",
    )
}

fn no_filter(d: &Deployment) -> Option<Trouble> {
    trouble(
        d.mappings().any(|mapping| mapping.filtered),
        "Lambda deletes what a filter does not match: an order whose shape changed is gone without a trace",
        "remove FilterCriteria; aws lambda update-event-source-mapping --uuid ID --filter-criteria '{}'",
    )
}

fn fifo_batch(d: &Deployment) -> Option<Trouble> {
    let batches =
        |mapping: &Mapping| mapping.batch_size > 10 || mapping.window.is_some_and(|window| window > 0);
    trouble(
        d.queue.known()?.fifo && d.mappings().any(batches),
        "Lambda refuses batches above 10 and any batching window on a FIFO queue",
        "sam deploy --parameter-overrides BatchSize=10 MaxBatchingWindow=0",
    )
}

fn large_batch_window(d: &Deployment) -> Option<Trouble> {
    let refused = |mapping: &&Mapping| mapping.batch_size > 10 && mapping.window.unwrap_or(0) == 0;
    let mapping = d.mappings().find(refused)?;
    trouble(
        !d.queue.known()?.fifo,
        format!("Lambda refuses a batch size of {} without a batching window", mapping.batch_size),
        "sam deploy --parameter-overrides MaxBatchingWindow=1",
    )
}

fn one_scaling_mode(d: &Deployment) -> Option<Trouble> {
    let both = |scaling: Scaling| scaling.provisioned && scaling.maximum_concurrency.is_some();
    trouble(
        d.mappings().any(|mapping| both(mapping.scaling)),
        "Lambda refuses MaximumConcurrency together with provisioned pollers",
        "keep either ScalingConfig or ProvisionedPollerConfig",
    )
}

/// Without a bound the pollers receive more than can run; the rest is throttled and every throttle burns a receive.
fn bounded_concurrency(d: &Deployment) -> Option<Trouble> {
    let unbounded =
        |scaling: Scaling| !scaling.provisioned && scaling.maximum_concurrency.is_none_or(|most| most < 2);
    trouble(
        d.mappings().any(|mapping| unbounded(mapping.scaling)),
        "nothing bounds the load on the payment provider, and throttled orders use up their receives",
        "sam deploy --parameter-overrides MaximumConcurrency=10",
    )
}

fn events_counted(d: &Deployment) -> Option<Trouble> {
    trouble(
        d.mappings().any(|mapping| !mapping.counts_events),
        "no metric of Lambda sees a batch in which some orders fail",
        "set MetricsConfig: {Metrics: [EventCount]}",
    )
}
