//! The Lambda function: wiring only. To try it without AWS, type `make run`.

use std::{process::ExitCode, sync::Arc};

use charge_once::{
    backoff::Random,
    batch::BatchRules,
    charge::{Desk, OneShotCharge, Step, TwoPhaseCharge},
    clients::Clients,
    clock::Clock,
    config::{Config, Environment, GatewayKind, ProcessEnvironment, SecretSource},
    gateway::{Transport, http::HttpGateway, secret::Credential, stripe::StripeGateway},
    handler::Handler,
    ledger::dynamodb::DynamoDbLedger,
    queue::sqs::SqsQueue,
    telemetry::{self, ErrorChain},
    visibility::VisibilityRules,
};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::RawValue;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let config = Config::from_env(&ProcessEnvironment);
    let level = config.as_ref().map_or(tracing::level_filters::LevelFilter::INFO, |config| config.log_level);
    let subscriber = telemetry::subscriber(level, Clock::system(), std::io::stdout());
    let result = tracing::subscriber::set_global_default(subscriber)
        .map_err(BoxError::from)
        .and_then(|()| Ok(config?))
        .and_then(|config| runtime()?.block_on(start(config)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %ErrorChain(&*error), "the function cannot start");
            ExitCode::FAILURE
        }
    }
}

/// One thread is a quarter faster where one invocation runs at a time; Managed Instances run several.
fn runtime() -> Result<tokio::runtime::Runtime, BoxError> {
    let env = ProcessEnvironment;
    if env.get("AWS_LAMBDA_RUNTIME_API").is_none() {
        return Err(
            "AWS_LAMBDA_RUNTIME_API is not set: this program is started by AWS Lambda; try `make run`".into(),
        );
    }
    let concurrent = env.get("AWS_LAMBDA_MAX_CONCURRENCY").is_some_and(|max| max != "1");
    let mut builder = match concurrent {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    Ok(builder.enable_all().build()?)
}

async fn start(config: Config) -> Result<(), BoxError> {
    let clients = Clients::load(&ProcessEnvironment).await?;
    let credential = credential(&config.secret, &clients).await?;
    let ledger = clients.ledger(&config.ledger_table);
    ledger.warm().await;
    let queue = clients.queue();
    let transport = Transport::new()?;
    let desk = Desk { ledger, rules: config.rules.clone(), clock: Clock::system(), random: Random::System };
    match config.gateway.clone() {
        GatewayKind::Http { url } => {
            let gateway = HttpGateway::new(transport, url, credential, &config.account, Clock::system());
            let step =
                OneShotCharge { desk, gateway, key_window: config.key_window, look_up: config.look_up };
            serve(step, queue, config).await
        }
        GatewayKind::Stripe { url } => {
            let gateway = StripeGateway::new(transport, url, credential, &config.account, Clock::system())?;
            serve(TwoPhaseCharge::<DynamoDbLedger, _> { desk, gateway }, queue, config).await
        }
    }
}

async fn credential(source: &SecretSource, clients: &Clients) -> Result<Credential, BoxError> {
    Ok(match source {
        SecretSource::None => Credential::fixed(None, Clock::system()),
        SecretSource::Given(secret) => Credential::fixed(Some(secret.clone()), Clock::system()),
        SecretSource::SecretsManager(id) => {
            let fetch = clients.secret(id);
            let secret =
                fetch().await.map_err(|error| format!("GATEWAY_SECRET_ARN: {}", ErrorChain(&*error)))?;
            Credential::renewable(secret, fetch, Clock::system())
        }
    })
}

async fn serve<S: Step + 'static>(step: S, queue: SqsQueue, config: Config) -> Result<(), BoxError> {
    let handler = Arc::new(Handler {
        step,
        queue,
        batch: BatchRules {
            concurrency: config.concurrency,
            time_to_begin: config.time_to_begin(),
            order: config.order,
            move_poison_to: config.move_poison_to,
        },
        visibility: VisibilityRules { backoff: config.backoff, max_receive_count: config.max_receive_count },
        queue_url: config.queue_url,
        service: config.service,
        default_timeout: config.default_timeout,
        clock: Clock::system(),
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
