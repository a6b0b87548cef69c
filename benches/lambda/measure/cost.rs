//! What a million orders cost, from counted requests and measured durations.

use std::time::Duration;

use super::Chapter;
use crate::{
    BoxError,
    candidate::{Candidate, charge_once},
    event,
    report::{as_f64, median, ms, table::Table},
    standin::{Contract, Latency, World, store::Usage},
};

/// DynamoDB in its own region, and a card provider.
const LATENCY: (u64, u64) = (5, 300);
/// What `template.yaml` gives the function.
const MEMORY_GB: f64 = 0.25;
const BATCHES: [(u32, u32); 3] = [(1, 3), (10, 3), (100, 2)];
const MILLION: f64 = 1e6;

/// List prices of us-east-1 in US dollars, x86, on demand, without free tiers; to be checked before they are used.
mod price {
    pub(super) const MILLION_WRITE_UNITS: f64 = 0.625;
    pub(super) const MILLION_READ_UNITS: f64 = 0.125;
    pub(super) const GB_SECOND: f64 = 0.000_016_666_7;
    pub(super) const MILLION_INVOCATIONS: f64 = 0.20;
    pub(super) const MILLION_SQS_REQUESTS: f64 = 0.40;
}

/// Of a million orders.
struct Figures {
    name: String,
    records: u32,
    duration: Duration,
    write_units: f64,
    read_units: f64,
    gb_seconds: f64,
    invocations: f64,
    sqs_requests: f64,
}

impl Figures {
    fn dynamodb(&self) -> f64 {
        (self.write_units * price::MILLION_WRITE_UNITS + self.read_units * price::MILLION_READ_UNITS)
            / MILLION
    }

    fn lambda(&self) -> f64 {
        self.gb_seconds * price::GB_SECOND + self.invocations * price::MILLION_INVOCATIONS / MILLION
    }

    fn sqs(&self) -> f64 {
        self.sqs_requests * price::MILLION_SQS_REQUESTS / MILLION
    }
}

pub(crate) fn measure(candidates: &[Candidate]) -> Result<Chapter, BoxError> {
    let ours = charge_once();
    let mut figures = Vec::new();
    for contract in [Contract::OneShot, Contract::TwoPhase] {
        for batch in BATCHES {
            figures.push(one(&ours, contract, batch)?);
        }
    }
    for peer in candidates.iter().filter(|candidate| candidate.works && candidate.name.ends_with("Python")) {
        for batch in BATCHES {
            figures.push(one(peer, Contract::OneShot, batch)?);
        }
    }
    Ok(chapter(&figures))
}

fn one(
    candidate: &Candidate,
    contract: Contract,
    (records, batches): (u32, u32),
) -> Result<Figures, BoxError> {
    let latency = Latency::millis(LATENCY.0, LATENCY.1);
    let function = World { contract, latency, concurrency: 10 }.start(candidate)?;
    function.invoke(event::orders(10, 900_000))?;
    let (before, mut times) = (function.usage(), Vec::new());
    for run in 0..batches {
        times.push(function.invoke(event::orders(records, run))?);
    }
    let (duration, used) = (median(times), function.usage().since(before));
    let share = |count: u64| as_f64(count) / f64::from(records * batches) * MILLION;
    let invocations = MILLION / f64::from(records);
    // One call receives, and one deletes, at most ten messages.
    let calls = f64::from(2 * records.div_ceil(10));
    Ok(Figures {
        name: format!("{}, {}", candidate.name, contract.name()),
        records,
        duration,
        write_units: share(used.write_units),
        read_units: share(used.half_read_units) / 2.0,
        gb_seconds: duration.as_secs_f64() * MEMORY_GB * invocations,
        invocations,
        sqs_requests: invocations * calls,
    })
}

impl Usage {
    fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls - before.calls,
            write_units: self.write_units - before.write_units,
            half_read_units: self.half_read_units - before.half_read_units,
        }
    }
}

fn chapter(figures: &[Figures]) -> Chapter {
    let millions = |count: f64| format!("{:.2} M", count / MILLION);
    let dollars = |price: f64| format!("{price:.2}");
    let row = |one: &Figures| {
        vec![
            one.name.clone(),
            one.records.to_string(),
            ms(one.duration),
            millions(one.write_units),
            format!("{:.0}", one.gb_seconds),
            millions(one.invocations),
            millions(one.sqs_requests),
            dollars(one.dynamodb()),
            dollars(one.lambda()),
            dollars(one.sqs()),
            dollars(one.dynamodb() + one.lambda() + one.sqs()),
        ]
    };
    Chapter {
        title: "Cost of a million orders",
        how: format!(
            "Counted: write units (items rounded up to KiB) and reads at the store. Measured: the duration of a warm batch \
             with {} ms a call to the store and {} ms to the provider, `CONCURRENCY=10`, at {MEMORY_GB} GB; the peer works one \
             record after the other, its default. Derived: one invocation a batch; one receive and one delete for each ten \
             messages, without empty receives and without what the producer sends. Prices are list prices of us-east-1 in US \
             dollars, to be checked before they are used: {} a million write units, {} a million read units, {} a GB-second, \
             {:.2} a million invocations, {:.2} a million SQS requests; logs and the provider's fees come on top.",
            LATENCY.0,
            LATENCY.1,
            price::MILLION_WRITE_UNITS,
            price::MILLION_READ_UNITS,
            price::GB_SECOND,
            price::MILLION_INVOCATIONS,
            price::MILLION_SQS_REQUESTS,
        ),
        table: Table {
            head: vec![
                "function, kind",
                "batch",
                "duration",
                "write units",
                "GB-seconds",
                "invocations",
                "SQS requests",
                "DynamoDB $",
                "Lambda $",
                "SQS $",
                "sum $",
            ],
            rows: figures.iter().map(row).collect(),
        },
        plots: Vec::new(),
        reading: "An order in flight mostly waits, and a waiting function is paid for. So the concurrency inside a batch \
                  decides the price of Lambda, and the number of writes that of DynamoDB; neither depends much on CPU."
            .to_owned(),
        headlines: headlines(figures),
    }
}

fn headlines(figures: &[Figures]) -> Vec<(&'static str, String)> {
    let tens = figures.iter().filter(|one| one.records == 10);
    let sum = |one: &Figures| format!("${:.2}", one.dynamodb() + one.lambda() + one.sqs());
    let all: Vec<_> = tens.map(|one| format!("{} {}", one.name, sum(one))).collect();
    vec![(
        "AWS's price of a million orders in batches of 10, at a provider that takes 300 ms",
        all.join("; "),
    )]
}
