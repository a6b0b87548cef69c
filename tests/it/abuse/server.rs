//! A server that answers in every wrong way there is, in the place of the provider, of DynamoDB or of SQS.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// What becomes of every request.
#[derive(Clone, Debug)]
pub(super) enum Behaviour {
    /// Nothing is ever answered.
    Silent,
    /// The answer comes byte by byte, with this pause before each.
    Drip(&'static str, Duration),
    /// A body without an end; the server counts on the client to hang up.
    Endless,
    /// The answer as it is written here, then the connection ends.
    Raw(String),
}

/// A 1 MiB block, sent again and again.
const BLOCK: usize = 1024 * 1024;
/// What `Endless` sends at most.
const BLOCKS: usize = 1024;

impl Behaviour {
    /// An answer with a true length.
    pub(super) fn answer(status: u16, content_type: &str, body: &str) -> Self {
        Self::answer_of_length(body.len(), status, content_type, body)
    }

    /// An answer that says it has `length` bytes.
    pub(super) fn answer_of_length(length: usize, status: u16, content_type: &str, body: &str) -> Self {
        Self::Raw(format!(
            "HTTP/1.1 {status} Whatever\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\
             location: http://127.0.0.1:1/elsewhere\r\nconnection: close\r\n\r\n{body}"
        ))
    }
}

/// Listens until it is dropped.
pub(super) struct Server {
    pub(super) url: String,
    _accepting: JoinSet<()>,
}

impl Server {
    pub(super) async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let behaviour = Arc::new(behaviour);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&behaviour)));
            }
        });
        Self { url, _accepting: accepting }
    }
}

/// The client hanging up is what is expected of it, so no error matters.
async fn serve(mut stream: TcpStream, behaviour: Arc<Behaviour>) {
    if read_request(&mut stream).await.is_none() {
        return;
    }
    let _hung_up = match &*behaviour {
        Behaviour::Silent => std::future::pending().await,
        Behaviour::Drip(answer, pause) => drip(&mut stream, answer, *pause).await,
        Behaviour::Endless => endless(&mut stream).await,
        Behaviour::Raw(answer) => stream.write_all(answer.as_bytes()).await,
    };
}

/// Reads the head and as much of a body as it announces.
async fn read_request(stream: &mut TcpStream) -> Option<()> {
    let mut read = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(());
            }
        }
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => read.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

async fn drip(stream: &mut TcpStream, answer: &str, pause: Duration) -> std::io::Result<()> {
    for byte in answer.as_bytes() {
        stream.write_all(&[*byte]).await?;
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

async fn endless(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        BLOCK * BLOCKS
    );
    stream.write_all(head.as_bytes()).await?;
    let block = vec![b' '; BLOCK];
    for _ in 0..BLOCKS {
        stream.write_all(&block).await?;
    }
    Ok(())
}
