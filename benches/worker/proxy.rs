//! Holds back what clients send, as a longer way to the queue would: what arrives together leaves together.
//!
//! Threads sleep to a tenth of a millisecond; the timer of tokio counts whole ones, which would add up to 3 % here.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// A running proxy; its threads end with the process.
pub(crate) struct Proxy {
    url: String,
}

impl Proxy {
    /// Listens on a free loopback port for what goes to `upstream`, an address such as `127.0.0.1:4566`.
    pub(crate) fn start(upstream: &str, delay: Duration) -> io::Result<Self> {
        let upstream: SocketAddr = upstream.parse().map_err(io::Error::other)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let url = format!("http://{}", listener.local_addr()?);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A connection that cannot be made is closed; the client sees that and says so.
                drop(connect(&client, upstream, delay));
            }
        });
        Ok(Self { url })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

fn connect(client: &TcpStream, upstream: SocketAddr, delay: Duration) -> io::Result<()> {
    let server = TcpStream::connect(upstream)?;
    // Either side may lack TCP_NODELAY; the measurement is then of delayed acknowledgements.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (line, due) = mpsc::channel();
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let (mut from_server, mut to_client) = (server, client.try_clone()?);
    thread::spawn(move || {
        while let Some(bytes) = read(&mut from_client) {
            if line.send((Instant::now() + delay, bytes)).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (at, bytes) in due {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to_server.write_all(&bytes).is_err() {
                break;
            }
        }
        // Fails only where the other side has closed the connection already.
        drop(to_server.shutdown(Shutdown::Write));
    });
    thread::spawn(move || {
        while let Some(bytes) = read(&mut from_server) {
            if to_client.write_all(&bytes).is_err() {
                break;
            }
        }
        drop(to_client.shutdown(Shutdown::Both));
    });
    Ok(())
}

/// What came, or `None` at the end of the connection.
fn read(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 65_536];
    let count = from.read(&mut buffer).ok().filter(|count| *count > 0)?;
    buffer.truncate(count);
    Some(buffer)
}
