//! A provider that answers a charge when it is told to.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Where charges wait.
pub(super) struct Gate(TcpListener);

/// A charge whose caller waits for the answer.
pub(super) struct Pending(TcpStream);

impl Gate {
    pub(super) async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// What `GATEWAY_URL` must be.
    pub(super) fn url(&self) -> String {
        format!("http://{}/charges", self.0.local_addr().unwrap())
    }

    /// Waits for a charge; its body is a JSON object, which ends the request.
    pub(super) async fn charge(&self) -> Pending {
        let (mut stream, _caller) = self.0.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the caller hung up");
        }
        Pending(stream)
    }
}

impl Pending {
    pub(super) async fn succeed(mut self) {
        let body = r#"{"id":"ch_1","status":"succeeded"}"#;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        self.0.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    }
}
