//! The function, or the worker, on a machine whose clock is wrong by `SKEW_MS`: what `make soak` runs side by side.
//! For tests only; the deployed binaries take no such setting.
//!
//! ```text
//! skewed                                                        the function
//! skewed worker --queue-url URL --loops N --visibility SECONDSs the worker
//! ```

use std::{sync::Arc, time::Duration};

use charge_once::{
    clients::Clients,
    clock::{Clock, Timestamp, parse_duration},
    config::{Config, Environment, ProcessEnvironment},
    lambda, telemetry,
    wiring::{self, ConfiguredCharge, StartError},
    worker::WorkerRules,
};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let config = Config::from_env(&ProcessEnvironment)?;
    let clock = skewed(ProcessEnvironment.get("SKEW_MS").as_deref().unwrap_or("0").parse()?);
    let subscriber = telemetry::subscriber(config.log_level, clock.clone(), std::io::stdout());
    tracing::subscriber::set_global_default(subscriber)?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((mode, options)) if mode == "worker" => work(config, clock, options).await,
        Some(_) => Err("no argument, or `worker`".into()),
        None => serve(config, clock).await,
    }
}

fn skewed(millis: i64) -> Clock {
    let right = Clock::system();
    Clock::from_fn(move || Timestamp::from_millis(right.now().as_millis().saturating_add(millis)))
}

async fn serve(config: Config, clock: Clock) -> Result<(), StartError> {
    let clients = Clients::load(&ProcessEnvironment).await?;
    let step = ConfiguredCharge::by_clock(&config, &clients, clock.clone()).await?;
    lambda::serve(wiring::handler(config, &clients, step, clock)?).await
}

async fn work(mut config: Config, clock: Clock, options: &[String]) -> Result<(), StartError> {
    let option = |name: &str| {
        let value = options.iter().skip_while(|option| *option != name).nth(1);
        value.ok_or_else(|| format!("{name} is missing"))
    };
    config.rules.renews_lease = true;
    let loops = option("--loops")?.parse()?;
    let clients = Clients::load(&ProcessEnvironment).await?;
    let step = ConfiguredCharge::by_clock(&config, &clients, clock.clone()).await?;
    let rules = WorkerRules {
        queue_url: option("--queue-url")?.clone(),
        loops,
        concurrency: config.concurrency.saturating_mul(loops),
        visibility: parse_duration(option("--visibility")?).ok_or("--visibility is no duration")?,
        wait: Duration::from_secs(1),
    };
    let worker = Arc::new(wiring::worker(config, &clients, step, rules, clock)?);
    Ok(worker.run(std::future::pending()).await?)
}
