//! Holds back what clients send, as a longer way to the queue would: what arrives together leaves together.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

/// A running proxy; it stops when dropped.
pub(crate) struct Proxy {
    url: String,
    _server: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(upstream: &str, delay: Duration) -> io::Result<Self> {
        let upstream: SocketAddr = upstream.parse().map_err(io::Error::other)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _peer)) = listener.accept().await {
                connections.spawn(connect(client, upstream, delay));
            }
        });
        Ok(Self { url, _server: server })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

async fn connect(client: TcpStream, upstream: SocketAddr, delay: Duration) {
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    // Either side may lack TCP_NODELAY; the measurement is then of delayed acknowledgements.
    if client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).is_err() {
        return;
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(forward(from_client, to_server, delay), forward(from_server, to_client, Duration::ZERO));
}

/// Forwards bytes, each `delay` after it came.
async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (line, mut due) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async move {
        let mut buffer = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let bytes = buffer.get(..count).unwrap_or_default().to_vec();
            if line.send((Instant::now() + delay, bytes)).is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((at, bytes)) = due.recv().await {
            if !delay.is_zero() {
                sleep_until(at).await;
            }
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, write);
}
