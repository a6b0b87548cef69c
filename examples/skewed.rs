//! The function, or the worker, on a machine whose clock is wrong by `SKEW_MS`: what `make soak` runs side by side.
//! For tests only; the deployed binaries take no such setting.
//!
//! ```text
//! skewed                                                        the function
//! skewed worker --queue-url URL --loops N --visibility SECONDSs the worker
//! ```

use std::{sync::Arc, time::Duration};

use charge_once::{
    backoff::Random,
    clients::Clients,
    clock::{Clock, Timestamp},
    config::{Config, Environment, ProcessEnvironment, parse_duration},
    handler::Handler,
    telemetry,
    wiring::{self, ConfiguredCharge, StartError},
    worker::{Monitor, Worker, WorkerRules},
};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::RawValue;

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
    let handler = Arc::new(Handler {
        step: ConfiguredCharge::by_clock(&config, &clients, clock.clone()).await?,
        queue: clients.queue(),
        payloads: wiring::payloads(&config, &clients),
        spans: wiring::spans(&config)?,
        batch: wiring::batch_rules(&config),
        visibility: wiring::visibility_rules(&config),
        queue_url: config.queue_url,
        service: config.service,
        default_timeout: config.default_timeout,
        clock,
        random: Random::System,
        emit: telemetry::print_line,
    });
    let function = service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let handler = Arc::clone(&handler);
        async move {
            let (payload, context) = event.into_parts();
            handler.handle(payload.get(), context.deadline, &context.request_id).await
        }
    });
    lambda_runtime::run_concurrent(function).await
}

async fn work(mut config: Config, clock: Clock, options: &[String]) -> Result<(), StartError> {
    let option = |name: &str| {
        let value = options.iter().skip_while(|option| *option != name).nth(1);
        value.ok_or_else(|| format!("{name} is missing"))
    };
    config.rules.renews_lease = true;
    let loops = option("--loops")?.parse()?;
    let clients = Clients::load(&ProcessEnvironment).await?;
    let worker = Arc::new(Worker {
        step: ConfiguredCharge::by_clock(&config, &clients, clock.clone()).await?,
        queue: Arc::new(clients.receiving_queue()),
        payloads: wiring::payloads(&config, &clients),
        spans: wiring::spans(&config)?,
        rules: WorkerRules {
            queue_url: option("--queue-url")?.clone(),
            loops,
            concurrency: config.concurrency.saturating_mul(loops),
            visibility: parse_duration(option("--visibility")?).ok_or("--visibility is no duration")?,
            wait: Duration::from_secs(1),
        },
        batch: wiring::batch_rules(&config),
        visibility: wiring::visibility_rules(&config),
        service: config.service,
        monitor: Arc::new(Monitor::new(clock.clone())),
        clock,
        random: Random::System,
        emit: telemetry::print_line,
    });
    Ok(worker.run(std::future::pending()).await?)
}
