//! Liveness and counters over HTTP, for whoever runs the worker.

use std::{convert::Infallible, future::Future, io, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::Monitor;

/// Answers `GET /healthz` and `GET /metrics` until `shutdown` completes.
pub async fn serve(listener: TcpListener, monitor: Arc<Monitor>, shutdown: impl Future<Output = ()>) {
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => return,
            accepted = listener.accept() => accept(accepted, &monitor, &mut connections),
            Some(_done) = connections.join_next() => {}
        }
    }
}

fn accept(
    accepted: io::Result<(TcpStream, std::net::SocketAddr)>,
    monitor: &Arc<Monitor>,
    connections: &mut JoinSet<()>,
) {
    let stream = match accepted {
        Ok((stream, _peer)) => stream,
        Err(error) => {
            tracing::warn!(%error, "a connection for health and metrics failed");
            return;
        }
    };
    let monitor = Arc::clone(monitor);
    connections.spawn(async move {
        let service = service_fn(move |request: Request<Incoming>| {
            let response = answer(request.method(), request.uri().path(), &monitor);
            async move { Ok::<_, Infallible>(response) }
        });
        let connection =
            http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection for health and metrics ended early");
        }
    });
}

fn answer(method: &Method, path: &str, monitor: &Monitor) -> Response<Full<Bytes>> {
    let (status, text) = match (method, path) {
        (&Method::GET, "/healthz") if monitor.is_healthy() => (StatusCode::OK, "ok\n".to_owned()),
        (&Method::GET, "/healthz") => {
            let silence = monitor.silence().as_secs();
            let text = format!("nothing was received or finished for {silence} s\n");
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
        (&Method::GET, "/metrics") => (StatusCode::OK, monitor.to_prometheus()),
        _ => (StatusCode::NOT_FOUND, "there is GET /healthz and GET /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let text = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::clock::{Clock, Timestamp};

    async fn get(address: std::net::SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn health_and_counters_are_served_until_the_shutdown() {
        let now = Arc::new(AtomicI64::new(0));
        let read = Arc::clone(&now);
        let clock = Clock::from_fn(move || Timestamp::from_millis(read.load(Ordering::Relaxed)));
        let monitor = Arc::new(Monitor::new(clock));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let mut server = JoinSet::new();
        server.spawn(serve(listener, monitor, async { stopped.await.unwrap_or(()) }));

        assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        assert!(get(address, "/metrics").await.contains("charge_once_charged_total 0"));
        assert!(get(address, "/").await.starts_with("HTTP/1.1 404"));
        now.store(121_000, Ordering::Relaxed);
        let answer = get(address, "/healthz").await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.ends_with("for 121 s\n"), "{answer}");

        stop.send(()).unwrap();
        server.join_all().await;
    }
}
