//! One connection to the provider, and how its faults look on a socket.

use std::{convert::Infallible, future, io, sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::header;
use http_body_util::{BodyExt, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    task, time,
};

use super::{
    message::{Answer, Reply, Request},
    server::Shared,
};

/// More than any request of either contract.
const MAX_BODY: usize = 1024 * 1024;

/// Serves everyone who connects.
pub(super) async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => shared.spawn(serve(Arc::clone(&shared), stream)),
            // Out of descriptors, say: others must get a turn to give some back.
            Err(_) => task::yield_now().await,
        }
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    let reset = Arc::new(Notify::new());
    let service = service_fn(|request| Box::pin(respond(Arc::clone(&shared), Arc::clone(&reset), request)));
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let is_reset = tokio::select! {
        // How it ended is the caller's concern; a caller who goes away is no error here.
        _ = future::poll_fn(|context| connection.poll_without_shutdown(context)) => false,
        () = reset.notified() => true,
    };
    let stream = connection.into_parts().io.into_inner();
    if is_reset {
        // Without lingering, closing sends RST instead of FIN. Should it fail, the caller sees an end of file,
        // which proves as little.
        drop(stream.set_zero_linger());
    }
}

async fn respond(
    shared: Arc<Shared>,
    reset: Arc<Notify>,
    request: http::Request<Incoming>,
) -> Result<http::Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        reset.notify_one();
        return future::pending().await;
    };
    let request = Request {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: body.to_bytes(),
    };
    let answered = match shared.handle(request).await {
        Some(Reply::Answer(answer)) => Some(whole(answer)),
        Some(Reply::Truncated(answer)) => Some(truncated(answer)),
        Some(Reply::Drip(answer, pause)) => Some(dripping(answer, pause)),
        // A delayed one is answered by now; `None` is a provider that stops.
        Some(Reply::Hang | Reply::Delayed(..)) | None => None,
        Some(Reply::Reset) => {
            reset.notify_one();
            None
        }
    };
    match answered {
        Some(response) => Ok(response),
        None => future::pending().await,
    }
}

fn whole(answer: Answer) -> http::Response<Body> {
    let body = Body::from(answer.body.clone());
    response(answer, body)
}

/// The first half of the body behind a `Content-Length` that promises all of it.
fn truncated(answer: Answer) -> http::Response<Body> {
    let half = answer.body.slice(..answer.body.len().div_euclid(2));
    let body = stream::unfold(Some(half), |half| async move {
        match half {
            Some(half) => Some((Ok(half), None)),
            None => {
                // A turn for the connection to send what it has.
                task::yield_now().await;
                Some((Err(io::Error::other("the answer ends here")), None))
            }
        }
    });
    response(answer, Body::from_stream(body))
}

/// The body byte by byte.
fn dripping(answer: Answer, pause: Duration) -> http::Response<Body> {
    let body = stream::unfold(answer.body.clone(), move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        time::sleep(pause).await;
        let byte = rest.split_to(1);
        Some((Ok::<Bytes, Infallible>(byte), rest))
    });
    response(answer, Body::from_stream(body))
}

fn response(answer: Answer, body: Body) -> http::Response<Body> {
    let length = answer.body.len();
    let mut response = http::Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = *answer.headers;
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}
