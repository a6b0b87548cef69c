//! A proxy that passes on every request and can lose the reply to one of them.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
};

/// Stands between the function and a server.
pub(crate) struct LossyProxy {
    url: String,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    upstream: Mutex<Option<String>>,
    /// The text in a request whose reply is lost, and which of them.
    lose: Mutex<Option<(String, usize)>>,
    lost: AtomicUsize,
    losing: Notify,
}

impl LossyProxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self { url, shared, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// Until this is called, connections are closed at once.
    pub(crate) fn connect_to(&self, url: &str) {
        *self.shared.upstream.lock().unwrap() = Some(url.trim_start_matches("http://").to_owned());
    }

    /// Loses the reply to the `nth` request, from 1, that contains `text`.
    pub(crate) fn lose_reply_to(&self, text: &str, nth: usize) {
        *self.shared.lose.lock().unwrap() = Some((text.to_owned(), nth));
    }

    /// Waits until a reply has been lost.
    pub(crate) async fn has_lost(&self) {
        self.shared.losing.notified().await;
    }

    pub(crate) fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let upstream = shared.upstream.lock().unwrap().clone();
        if let Some(upstream) = upstream {
            connections.spawn(pass_on(client, upstream, Arc::clone(&shared)));
        }
    }
}

/// HTTP/1.1 without pipelining: a request is everything the client sends until the server answers.
async fn pass_on(mut client: TcpStream, upstream: String, shared: Arc<Shared>) {
    let mut server = TcpStream::connect(upstream).await.unwrap();
    let (mut request, mut from_client, mut from_server) = (Vec::new(), vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(count) if count > 0 => {
                    request.extend_from_slice(&from_client[..count]);
                    if server.write_all(&from_client[..count]).await.is_err() { return }
                }
                _ => return,
            },
            read = server.read(&mut from_server) => match read {
                Ok(count) if count > 0 => {
                    if is_lost(&std::mem::take(&mut request), &shared) {
                        shared.lost.fetch_add(1, Ordering::SeqCst);
                        shared.losing.notify_one();
                        return;
                    }
                    if client.write_all(&from_server[..count]).await.is_err() { return }
                }
                _ => return,
            },
        }
    }
}

fn is_lost(request: &[u8], shared: &Shared) -> bool {
    let mut lose = shared.lose.lock().unwrap();
    let Some((text, nth)) = lose.as_mut() else { return false };
    if !String::from_utf8_lossy(request).contains(text.as_str()) {
        return false;
    }
    *nth -= 1;
    let now = *nth == 0;
    if now {
        *lose = None;
    }
    now
}
