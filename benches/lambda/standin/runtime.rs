//! A stand-in for the Lambda Runtime API with one function on it.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::{Duration, Instant},
};

use super::http::{Request, Response, Server};
use crate::{BoxError, event::now_millis};

/// What the function says.
#[derive(Debug)]
pub(crate) enum Said {
    /// It asked for an event.
    Next(Instant),
    /// It answered.
    Answer(Instant, Vec<u8>),
    /// It failed, with its own words.
    Error(String),
}

/// How long an invocation may take.
const TIMEOUT: Duration = Duration::from_secs(600);

pub(crate) struct Runtime {
    pub(crate) server: Server,
    events: mpsc::Sender<Vec<u8>>,
    said: mpsc::Receiver<Said>,
}

impl Runtime {
    pub(crate) fn start() -> io::Result<Self> {
        let (events, next) = mpsc::channel::<Vec<u8>>();
        let (say, said) = mpsc::channel();
        let next = Arc::new(Mutex::new(next));
        let server = Server::start(move |request| {
            let now = Instant::now();
            let Request { line, body, .. } = request;
            if line.ends_with("/next") {
                say.send(Said::Next(now)).ok()?;
                let event = next.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()?;
                return Some(Response { headers: headers(), ..Response::json(200, event) });
            }
            let said = match line.ends_with("/response") {
                true => Said::Answer(now, body),
                false => Said::Error(String::from_utf8_lossy(&body).chars().take(2000).collect()),
            };
            say.send(said).ok()?;
            Some(Response::json(202, "{}"))
        })?;
        Ok(Self { server, events, said })
    }

    /// The next thing that the function says within `time`.
    pub(crate) fn listen(&self, time: Duration) -> Option<Said> {
        self.said.recv_timeout(time).ok()
    }

    /// Invokes the function; tells how long it took until the answer came. An answer that lists failures is an error.
    pub(crate) fn invoke(&self, event: Vec<u8>) -> Result<Duration, BoxError> {
        let (took, answer) = self.ask(event)?;
        match answer.replace(' ', "").contains("itemIdentifier") {
            false => Ok(took),
            true => Err(format!("failures: {}", answer.chars().take(300).collect::<String>()).into()),
        }
    }

    /// Invokes the function; its answer, whatever it says.
    pub(crate) fn ask(&self, event: Vec<u8>) -> Result<(Duration, String), BoxError> {
        let began = Instant::now();
        self.events.send(event)?;
        loop {
            match self.listen(TIMEOUT).ok_or("no answer came in time")? {
                Said::Next(_) => {}
                Said::Answer(at, answer) => {
                    return Ok((at.duration_since(began), String::from_utf8_lossy(&answer).into_owned()));
                }
                Said::Error(words) => return Err(words.into()),
            }
        }
    }
}

fn headers() -> String {
    let deadline = now_millis() + TIMEOUT.as_millis();
    format!(
        "Content-Type: application/json\r\nLambda-Runtime-Aws-Request-Id: 8476a536-e9f4-11e8-9739-2dfe598c3fcd\r\n\
         Lambda-Runtime-Deadline-Ms: {deadline}\r\n\
         Lambda-Runtime-Invoked-Function-Arn: arn:aws:lambda:eu-central-1:123456789012:function:charge-once\r\n\
         Lambda-Runtime-Trace-Id: Root=1-00000000-000000000000000000000000;Sampled=0\r\n"
    )
}
