//! The Lambda function as a process: its log, its settings, its loop. The binary `bootstrap` is this with the
//! configured charge; a function of your own is this with a step of its own.

use std::{future::pending, panic::resume_unwind, process::ExitCode, sync::Arc};

use lambda_runtime::{LambdaEvent, service_fn};
use tokio::task::JoinSet;

use crate::{
    charge::Step,
    clients::Clients,
    clock::Clock,
    config::{Config, Environment, ProcessEnvironment},
    event::SqsEvent,
    handler::Handler,
    queue::Queue,
    telemetry::{self, ErrorChain},
    wiring::{self, StartError},
};

/// Runs a function until Lambda ends the process: reads the settings, lets `build` make the step from them, and
/// works on one event after the other. A failure to start is logged and is the exit code.
///
/// ```no_run
/// use charge_once::{lambda, wiring::ConfiguredCharge};
///
/// fn main() -> std::process::ExitCode {
///     lambda::run(ConfiguredCharge::build)
/// }
/// ```
pub fn run<S: Step + 'static>(
    build: impl AsyncFnOnce(&Config, &Clients) -> Result<S, StartError>,
) -> ExitCode {
    let config = Config::from_env(&ProcessEnvironment);
    let level = config.as_ref().map_or(tracing::level_filters::LevelFilter::INFO, |config| config.log_level);
    let subscriber = telemetry::subscriber(level, Clock::system(), std::io::stdout());
    let result = tracing::subscriber::set_global_default(subscriber)
        .map_err(StartError::from)
        .and_then(|()| Ok(config?))
        .and_then(|config| runtime()?.block_on(start(config, build)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %ErrorChain(&*error), "the function cannot start");
            ExitCode::FAILURE
        }
    }
}

/// One thread is a quarter faster where one invocation runs at a time; Managed Instances run several.
fn runtime() -> Result<tokio::runtime::Runtime, StartError> {
    let env = ProcessEnvironment;
    if env.get("AWS_LAMBDA_RUNTIME_API").is_none() {
        return Err(
            "AWS_LAMBDA_RUNTIME_API is not set: this program is a function that AWS Lambda starts; on this \
                    machine `charge-once local --bootstrap PATH-OF-THIS-PROGRAM` does"
                .into(),
        );
    }
    let concurrent = env.get("AWS_LAMBDA_MAX_CONCURRENCY").is_some_and(|max| max != "1");
    let mut builder = match concurrent {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    Ok(builder.enable_all().build()?)
}

async fn start<S: Step + 'static>(
    config: Config,
    build: impl AsyncFnOnce(&Config, &Clients) -> Result<S, StartError>,
) -> Result<(), StartError> {
    let clients = Clients::load(&ProcessEnvironment).await?;
    let step = build(&config, &clients).await?;
    serve(wiring::handler(config, &clients, step, Clock::system())?).await
}

/// Takes one event after the other from Lambda, until Lambda ends the process.
///
/// # Errors
/// The Runtime API cannot be reached, or refuses.
pub async fn serve<S: Step + 'static, Q: Queue + 'static>(handler: Handler<S, Q>) -> Result<(), StartError> {
    let handler = Arc::new(handler);
    let function = service_fn(move |event: LambdaEvent<SqsEvent>| {
        let handler = Arc::clone(&handler);
        let (event, context) = event.into_parts();
        // In a task: each wake of what a runtime blocks on is a system call, several a record; that of a task is none.
        let mut work = JoinSet::new();
        work.spawn(async move { handler.handle(event, context.deadline, &context.request_id).await });
        async move {
            match work.join_next().await {
                Some(Ok(answer)) => answer,
                Some(Err(error)) => resume_unwind(error.into_panic()),
                None => pending().await,
            }
        }
    });
    lambda_runtime::run_concurrent(function).await
}
