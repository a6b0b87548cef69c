//! The provider behind a loopback port.

use std::{
    fmt,
    future::Future,
    io, mem,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::JoinSet,
    time,
};

use super::{
    bank::SimulatedCharge,
    connection,
    message::{Reply, Request},
    provider::{LoggedRequest, Provider},
    script::Script,
};
use crate::clock::Clock;

/// A running provider. It stops when it is dropped; [`Simulated::stop`] waits until it has.
#[derive(Debug)]
pub struct Simulated {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl Simulated {
    /// Starts a provider on a free port of the loopback interface.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start(clock: Clock, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Self::start_on(listener, Provider::new(clock, script))
    }

    /// Starts a provider on a listener.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn start_on(listener: TcpListener, provider: Provider) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            provider: Mutex::new(provider),
            tasks: Mutex::default(),
            changed: watch::Sender::new(()),
        });
        shared.spawn(connection::accept(Arc::clone(&shared), listener));
        Ok(Self { shared, address })
    }

    /// `http://127.0.0.1:PORT`, without a slash at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Looks at the machine or changes it, between two requests.
    pub fn with<T>(&self, act: impl FnOnce(&mut Provider) -> T) -> T {
        self.shared.with(act)
    }

    /// The charges that moved money, in the order they were made.
    pub fn charges(&self) -> Vec<SimulatedCharge> {
        self.with(Provider::charges)
    }

    /// Every request so far, in the order of arrival.
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.with(|provider| provider.requests().to_vec())
    }

    /// Replaces the fault script.
    pub fn set_script(&self, script: Script) {
        self.with(|provider| provider.set_script(script));
    }

    /// Forgets every idempotency key.
    pub fn forget_keys(&self) {
        self.with(Provider::forget_keys);
    }

    /// Executes every late request now; how many there were.
    pub fn deliver_late(&self) -> usize {
        self.with(Provider::deliver_late)
    }

    /// Requires this bearer secret from now on, or none.
    pub fn require_secret(&self, secret: Option<&str>) {
        self.with(|provider| provider.require_secret(secret));
    }

    /// Waits until something holds, asked again after every request: a request has arrived, say, whose caller is
    /// then killed.
    pub async fn until(&self, mut holds: impl FnMut(&mut Provider) -> bool) {
        let mut changes = self.shared.changed.subscribe();
        while !self.with(&mut holds) && changes.changed().await.is_ok() {}
    }

    /// Closes the port and every connection, so that callers are refused. Charges and keys stay; requests that
    /// were being worked on are dropped, and their keys stay in use.
    pub async fn refuse_connections(&self) {
        let mut tasks = mem::take(&mut *lock(&self.shared.tasks));
        tasks.shutdown().await;
    }

    /// Opens the same port again.
    ///
    /// # Errors
    /// Somebody else has taken the port meanwhile, or it is still open.
    pub async fn accept_connections(&self) -> io::Result<()> {
        let listener = TcpListener::bind(self.address).await?;
        self.shared.spawn(connection::accept(Arc::clone(&self.shared), listener));
        Ok(())
    }

    /// Stops and waits until the port is closed.
    pub async fn stop(self) {
        self.refuse_connections().await;
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        // The tasks hold what owns them, so they would outlive the handle.
        lock(&self.shared.tasks).abort_all();
    }
}

/// What the connections share.
pub(super) struct Shared {
    provider: Mutex<Provider>,
    tasks: Mutex<JoinSet<()>>,
    changed: watch::Sender<()>,
}

impl Shared {
    fn with<T>(&self, act: impl FnOnce(&mut Provider) -> T) -> T {
        act(&mut lock(&self.provider))
    }

    /// Runs a task that ends with the provider.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Handles a request, also when its caller goes away meanwhile, as a real provider would; `None` if the
    /// provider stops first.
    pub(super) async fn handle(self: &Arc<Self>, request: Request) -> Option<Reply> {
        let (replied, reply) = oneshot::channel();
        let shared = Arc::clone(self);
        self.spawn(async move {
            // Nobody listens when the caller has gone, and that changes nothing.
            drop(replied.send(shared.carry(&request).await));
        });
        reply.await.ok()
    }

    /// The time a request takes: under way, and being worked on.
    async fn carry(&self, request: &Request) -> Reply {
        let latency = self.with(|provider| provider.latency());
        time::sleep(latency).await;
        let reply = self.with(|provider| provider.handle(request));
        self.changed.send_replace(());
        let Reply::Delayed(work, ticket) = reply else { return reply };
        time::sleep(work).await;
        let answer = self.with(|provider| provider.finish(ticket));
        self.changed.send_replace(());
        Reply::Answer(answer)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// A panic while the lock was held left nothing half done that a simulation would mind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
