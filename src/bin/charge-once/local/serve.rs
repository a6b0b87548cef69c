//! `charge-once local --serve`: the function stays up behind the Lambda Invoke API.

use std::{io::Write, net::SocketAddr, sync::Arc};

use charge_once::{
    clock::Clock,
    local::{
        invoke_api::InvokeApi,
        log::RecordLine,
        practice,
        runtime_api::{FUNCTION_NAME, InvocationOutcome},
        stack::Stack,
    },
};
use tokio::sync::mpsc;

use crate::{CommandResult, Finding, screen::Screen};

pub(super) async fn serve(stack: Arc<Stack>, address: SocketAddr, screen: &mut Screen) -> CommandResult {
    let (invoked, mut outcomes) = mpsc::unbounded_channel();
    let api = InvokeApi::start(address, Arc::clone(&stack), Clock::system(), invoked)
        .await
        .map_err(|source| ServeError { address, source })?;
    greet(screen, api.address(), &practice::open(&stack)?)?;
    while let Some(outcome) = outcomes.recv().await {
        tell(screen, &outcome, &stack.take_log()?)?;
    }
    Ok(Finding::Clean)
}

/// The port cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{address} cannot be listened on; choose another port with --port, 0 takes a free one")]
struct ServeError {
    address: SocketAddr,
    #[source]
    source: std::io::Error,
}

fn greet(screen: &mut Screen, address: SocketAddr, variables: &[(String, String)]) -> std::io::Result<()> {
    let port = address.port();
    let exports: String =
        variables.iter().map(|(name, value)| format!("  export {name}={value}\n")).collect();
    writeln!(
        screen,
        "\
The function is up on http://{address}, until Ctrl-C. Call it with

  aws lambda invoke --endpoint-url http://{address} --region eu-central-1 --function-name {FUNCTION_NAME} \\
    --payload fileb://event.json answer.json
  cargo lambda invoke --invoke-address 127.0.0.1 --invoke-port {port} --data-file event.json
  curl --data-binary @event.json http://{address}/2015-03-31/functions/{FUNCTION_NAME}/invocations

An event comes from `charge-once queue event`; any credentials do for `aws`.

A queue of orders is here, too. In a terminal of its own, where these variables do not meet an account of yours,

{exports}
let every command work on it, with the same ledger and provider: `charge-once queue send --count 20 --poison 20%`,
`charge-once worker`, `charge-once dlq stats`, `charge-once ledger list`.
"
    )?;
    screen.flush()
}

fn tell(screen: &mut Screen, outcome: &InvocationOutcome, log: &[String]) -> std::io::Result<()> {
    for record in log.iter().filter_map(|line| RecordLine::parse(line)) {
        let [message, order, decision, reason] =
            ["message_id", "order_id", "decision", "reason"].map(|field| record.text(field));
        writeln!(screen, "{message}  {order}  {decision}  {reason}")?;
    }
    match outcome {
        InvocationOutcome::Response(answer) => {
            writeln!(screen, "answer {}", String::from_utf8_lossy(answer))?;
        }
        InvocationOutcome::Error(error) => writeln!(screen, "failed: {}", error.error_message)?,
        InvocationOutcome::Crashed => writeln!(screen, "failed: the function's process ended")?,
        InvocationOutcome::TimedOut => writeln!(screen, "failed: the function timed out")?,
    }
    screen.flush()
}
