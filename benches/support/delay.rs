//! A TCP proxy that holds back every request for a while, as a network does.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Where the proxy listens; it ends when this is dropped.
pub(crate) struct Delay {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Delay {
    /// Passes on to `upstream` (`http://host:port`), each request `delay` later.
    pub(crate) async fn start(upstream: &str, delay: Duration) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let upstream = upstream.trim_start_matches("http://").to_owned();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(pass_on(client, upstream.clone(), delay));
            }
        });
        Ok(Self { address, _tasks: tasks })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// HTTP/1.1 without pipelining: a connection carries one request at a time, and a request goes out in one piece or
/// in several without a pause, so only the first piece after an answer waits.
async fn pass_on(mut client: TcpStream, upstream: String, delay: Duration) {
    let Ok(mut server) = TcpStream::connect(upstream).await else { return };
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    let mut answered = true;
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(count @ 1..) = read else { return };
                if std::mem::take(&mut answered) {
                    tokio::time::sleep(delay).await;
                }
                let Some(bytes) = from_client.get(..count) else { return };
                if server.write_all(bytes).await.is_err() { return }
            }
            read = server.read(&mut from_server) => {
                let Ok(count @ 1..) = read else { return };
                answered = true;
                let Some(bytes) = from_server.get(..count) else { return };
                if client.write_all(bytes).await.is_err() { return }
            }
        }
    }
}
