//! How the faults look on a real connection.

use std::io::ErrorKind;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::*;
use crate::gateway::simulated::{Effect, Rule, Simulated};

async fn started(script: Script) -> Simulated {
    Simulated::start(Hands::default().clock(), script).await.unwrap()
}

async fn connected(simulated: &Simulated) -> std::io::Result<TcpStream> {
    TcpStream::connect(simulated.base_url().strip_prefix("http://").unwrap()).await
}

/// Sends a charge and leaves the connection open.
async fn sent(simulated: &Simulated, order_id: &str) -> TcpStream {
    let request = charge(order_id, "pm");
    let head = format!(
        "POST /charges HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nidempotency-key: \"{}\"\r\n\
         content-length: {}\r\n\r\n",
        request.idempotency_key().unwrap(),
        request.body.len()
    );
    let mut stream = connected(simulated).await.unwrap();
    stream.write_all(&[head.as_bytes(), &request.body].concat()).await.unwrap();
    stream
}

/// Everything that arrives until the connection ends.
async fn received(simulated: &Simulated, order_id: &str) -> std::io::Result<String> {
    let mut stream = sent(simulated, order_id).await;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.map(|_| text)
}

fn once(effect: Effect) -> Script {
    Script::of([Rule::always(effect).times(1)])
}

#[tokio::test]
async fn a_charge_is_answered() {
    let simulated = started(Script::default()).await;
    let text = received(&simulated, "o-1").await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.ends_with(r#"{"id":"ch_sim_1","status":"succeeded"}"#), "{text}");
    assert_eq!(simulated.charges().len(), 1);
    assert_eq!(simulated.requests()[0].path, "/charges");
}

#[tokio::test]
async fn a_reset_is_a_reset_before_and_after_charging() {
    for (effect, charges) in [(Effect::ResetBefore {}, 0), (Effect::ResetAfter {}, 1)] {
        let simulated = started(once(effect)).await;
        let error = received(&simulated, "o-1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(simulated.charges().len(), charges);
        assert!(received(&simulated, "o-1").await.unwrap().contains("succeeded"));
    }
}

#[tokio::test]
async fn a_truncated_body_is_shorter_than_its_length_says() {
    let simulated = started(once(Effect::Truncated {})).await;
    let text = received(&simulated, "o-1").await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-length: 38"), "{head}");
    assert_eq!(body, r#"{"id":"ch_sim_1","s"#);
    assert_eq!(simulated.charges().len(), 1);
}

#[tokio::test]
async fn a_dripping_body_arrives_whole() {
    let simulated = started(once(Effect::Drip { every_ms: 1 })).await;
    assert!(received(&simulated, "o-1").await.unwrap().ends_with(r#""status":"succeeded"}"#));
}

#[tokio::test]
async fn a_hanging_request_ends_with_the_provider() {
    let simulated = started(once(Effect::HangAfter {})).await;
    let mut stream = sent(&simulated, "o-1").await;
    simulated.until(|provider| !provider.charges().is_empty()).await;
    let silence = stream.try_read(&mut [0; 1]).unwrap_err();
    assert_eq!(silence.kind(), ErrorKind::WouldBlock);
    simulated.stop().await;
    assert!(matches!(stream.read(&mut [0; 1]).await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn a_delayed_request_is_executed_though_its_caller_has_gone() {
    let simulated = started(once(Effect::Delay { ms: 1 })).await;
    let caller = sent(&simulated, "o-1").await;
    simulated.until(|provider| !provider.requests().is_empty()).await;
    drop(caller);
    simulated.until(|provider| !provider.charges().is_empty()).await;
}

#[tokio::test]
async fn a_closed_port_refuses_and_opens_again_with_its_charges() {
    let simulated = started(Script::default()).await;
    received(&simulated, "o-1").await.unwrap();
    simulated.refuse_connections().await;
    assert_eq!(connected(&simulated).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    simulated.accept_connections().await.unwrap();
    assert!(received(&simulated, "o-1").await.unwrap().contains("ch_sim_1"));
    assert_eq!(simulated.charges().len(), 1);
}

#[tokio::test]
async fn dropping_the_handle_closes_the_port() {
    let simulated = started(Script::default()).await;
    let address = simulated.base_url().strip_prefix("http://").unwrap().to_owned();
    let mut idle = TcpStream::connect(&address).await.unwrap();
    drop(simulated);
    assert!(matches!(idle.read(&mut [0; 1]).await, Ok(0) | Err(_)));
}
