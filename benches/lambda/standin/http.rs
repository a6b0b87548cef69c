//! A blocking HTTP/1.1 server with a thread per connection.
//!
//! Small on purpose: it shares the machine with what is measured, and its delays are exact to some 50 µs, where an
//! asynchronous timer rounds up to whole milliseconds.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// A request as far as the stand-ins look at it.
#[derive(Debug)]
pub(crate) struct Request {
    /// `POST /path`
    pub(crate) line: String,
    /// The header `x-amz-target`.
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
}

/// An answer; its length is added.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: "Content-Type: application/json\r\n".to_owned(), body: body.into() }
    }
}

/// Where a stand-in listens; it takes no more connections once this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    closing: Arc<AtomicBool>,
}

impl Server {
    /// Answers with `answer`; no answer closes the connection.
    pub(crate) fn start(
        answer: impl Fn(Request) -> Option<Response> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let closing = Arc::new(AtomicBool::new(false));
        let (closed, answer) = (Arc::clone(&closing), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if closed.load(Ordering::Relaxed) {
                    break;
                }
                let answer = Arc::clone(&answer);
                // A client that goes away ends its thread.
                std::thread::spawn(move || drop(converse(&stream, &*answer)));
            }
        });
        Ok(Self { address, closing })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the listener.
        drop(TcpStream::connect(self.address));
    }
}

fn converse(stream: &TcpStream, answer: &impl Fn(Request) -> Option<Response>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(16 * 1024, stream);
    while let Some(request) = read(&mut reader)? {
        let Some(Response { status, headers, body }) = answer(request) else { break };
        let length = body.len();
        let mut bytes =
            format!("HTTP/1.1 {status} -\r\n{headers}Content-Length: {length}\r\n\r\n").into_bytes();
        bytes.extend(body);
        (&*stream).write_all(&bytes)?;
    }
    Ok(())
}

fn read(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut request = Request {
        line: line.rsplit_once(' ').map_or_else(String::new, |(line, _version)| line.to_owned()),
        target: String::new(),
        body: Vec::new(),
    };
    let (mut length, mut chunked) = (0, false);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().map_err(io::Error::other)?;
        } else if name.eq_ignore_ascii_case("x-amz-target") {
            value.clone_into(&mut request.target);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.eq_ignore_ascii_case("chunked");
        }
    }
    request.body = if chunked { read_chunks(reader)? } else { vec![0; length] };
    if !chunked {
        reader.read_exact(&mut request.body)?;
    }
    Ok(Some(request))
}

fn read_chunks(reader: &mut BufReader<&TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(body);
        }
        chunk.truncate(length);
        body.extend(chunk);
    }
}
