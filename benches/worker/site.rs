//! A queue, and the way to it: directly, or through a proxy that holds requests back.

use std::{
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use aws_sdk_sqs::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region},
    types::{QueueAttributeName, SendMessageBatchRequestEntry},
};
use charge_once::{
    backoff::Random, clock::Clock, local::sqs_endpoint::SqsEndpoint, queue::memory::MemoryQueues,
};
use tokio::time::{Instant, sleep};

use super::proxy::Proxy;

/// Longer than any server here needs to start.
const MAX_START: Duration = Duration::from_secs(10);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Who plays SQS.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    /// The endpoint of local mode, in this process.
    Endpoint,
    /// The program `rustack` at this path, a process of its own.
    Rustack(&'a Path),
}

/// One queue with messages in it.
pub(crate) struct Site {
    server: Server,
    direct: Client,
    proxy: Proxy,
    queue_url: String,
}

enum Server {
    Endpoint(SqsEndpoint),
    Rustack(Child, String),
}

impl Server {
    async fn start(kind: Kind<'_>) -> Self {
        match kind {
            Kind::Endpoint => {
                let queues = MemoryQueues::new(Clock::system(), Random::seeded(1));
                Self::Endpoint(SqsEndpoint::start(queues).await.expect("a free port"))
            }
            Kind::Rustack(program) => {
                let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port").local_addr();
                let address = port.expect("it is bound").to_string();
                let mut command = Command::new(program);
                command.env_clear().env("GATEWAY_LISTEN", &address).stdin(Stdio::null());
                let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
                Self::Rustack(child.expect("rustack starts"), format!("http://{address}"))
            }
        }
    }

    fn url(&self) -> &str {
        match self {
            Self::Endpoint(endpoint) => endpoint.url(),
            Self::Rustack(_, url) => url,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Rustack(child, _) = self {
            child.kill().and_then(|()| child.wait()).expect("it runs until it is killed");
        }
    }
}

impl Site {
    /// A new server with `count` orders in its queue, `delay` away.
    pub(crate) async fn start(kind: Kind<'_>, count: u32, delay: Duration) -> Self {
        let server = Server::start(kind).await;
        let direct = client(server.url());
        let queue_url = create_queue(&direct).await;
        fill(&direct, &queue_url, count).await;
        let proxy = Proxy::start(server.url().trim_start_matches("http://"), delay).expect("a free port");
        Self { server, direct, proxy, queue_url }
    }

    /// Where the server is reached with the delay.
    pub(crate) fn url(&self) -> &str {
        self.proxy.url()
    }

    /// A client with connections of its own, through the proxy.
    pub(crate) fn client(&self) -> Client {
        client(self.proxy.url())
    }

    /// A client without the delay and the proxy.
    pub(crate) fn direct(&self) -> &Client {
        &self.direct
    }

    pub(crate) fn queue_url(&self) -> &str {
        &self.queue_url
    }

    /// Waits until every message is deleted.
    pub(crate) async fn until_empty(&self) {
        // Counting is dear at the endpoint itself, so it is asked only when little can be left.
        while self.left().await > 0 {
            sleep(MILLISECOND).await;
        }
    }

    async fn left(&self) -> usize {
        if let Server::Endpoint(endpoint) = &self.server {
            return endpoint.queues().depth("orders").expect("the queue exists").total();
        }
        let call = self.direct.get_queue_attributes().queue_url(&self.queue_url);
        let call = call.attribute_names(QueueAttributeName::All);
        let attributes =
            Box::pin(call.send()).await.expect("the queue answers").attributes.unwrap_or_default();
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        names.iter().filter_map(|name| attributes.get(name)?.parse::<usize>().ok()).sum()
    }
}

fn client(url: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::new("bench", "bench", None, None, "bench"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(url);
    Client::from_conf(config.build())
}

/// Tries until the server listens.
async fn create_queue(client: &Client) -> String {
    let begun = Instant::now();
    loop {
        let answer = Box::pin(client.create_queue().queue_name("orders").send()).await;
        match answer {
            Ok(answer) => return answer.queue_url.expect("an URL"),
            Err(_) if begun.elapsed() < MAX_START => sleep(MILLISECOND * 50).await,
            Err(error) => panic!("no server: {error:?}"),
        }
    }
}

async fn fill(client: &Client, url: &str, count: u32) {
    for first in (0..count).step_by(10) {
        let entry = |number: u32| {
            let body = format!(r#"{{"order_id":"o-{number}","amount":100,"currency":"EUR"}}"#);
            let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(body);
            entry.build().expect("complete")
        };
        let entries = (first..count.min(first + 10)).map(entry).collect();
        let call = client.send_message_batch().queue_url(url).set_entries(Some(entries));
        assert!(Box::pin(call.send()).await.expect("the queue answers").failed.is_empty());
    }
}
