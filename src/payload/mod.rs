//! Bodies that were too large for a message and lie in S3: which may be read, for how long and how much of them.
//!
//! The bucket is in the message, so whoever can send a message could make the function read any object it has the
//! right to. A pointer is therefore followed only into buckets that the settings name.

#[cfg(feature = "s3")]
pub mod s3;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::envelope::S3Pointer;

/// More than this is not read of an object, in bytes: as much as a message could hold itself. An order of that size
/// is none.
pub const LARGEST: usize = 1024 * 1024;
/// Longest time that an object may take, its body included.
const LONGEST: Duration = Duration::from_secs(6);

/// Why an object can never be an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadFault {
    /// S3 is consistent: what is not there now was deleted, or never written.
    #[error("the body points to an S3 object that does not exist")]
    Missing,
    /// It is larger than [`LARGEST`].
    #[error("the body points to an S3 object of more than 1 MiB")]
    TooLarge,
    /// It holds something else than UTF-8.
    #[error("the body points to an S3 object that is no text")]
    NotText,
    /// It is a pointer itself.
    #[error("the body points to an S3 object that is a pointer again")]
    PointsOn,
}

/// Why there is no text behind a pointer.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The bucket is not one that may be read. Nothing was sent.
    #[error("the bucket is not one that may be read")]
    NotAllowed,
    /// There was no time to begin. Nothing was sent.
    #[error("no time was left to read the object")]
    NoTime,
    /// The object can never be an order.
    #[error("the object cannot be used")]
    Unusable(#[source] PayloadFault),
    /// S3 did not give the object now: a refusal, an error, or silence.
    #[error("S3 did not give the object")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// An object on its way.
pub type Fetching = Pin<Box<dyn Future<Output = Result<Vec<u8>, PayloadError>> + Send>>;

/// How an object is read, at most [`LARGEST`] bytes of it.
pub type Fetch = Arc<dyn Fn(S3Pointer) -> Fetching + Send + Sync>;

/// The buckets that may be read, and how. Cheap to clone.
#[derive(Clone)]
pub struct Payloads {
    buckets: Arc<[String]>,
    fetch: Fetch,
}

impl Payloads {
    /// No pointer is followed.
    pub fn none() -> Self {
        Self::new(Vec::new(), Arc::new(|_pointer| Box::pin(async { Err(PayloadError::NotAllowed) })))
    }

    /// Pointers are followed into these buckets.
    pub fn new(buckets: Vec<String>, fetch: Fetch) -> Self {
        Self { buckets: buckets.into(), fetch }
    }

    /// The text that `pointer` points to, if it can be had within `within`.
    ///
    /// # Errors
    /// What [`PayloadError`] lists; the bucket is judged first.
    pub async fn text(&self, pointer: &S3Pointer, within: Duration) -> Result<String, PayloadError> {
        if !self.buckets.contains(&pointer.s3_bucket_name) {
            return Err(PayloadError::NotAllowed);
        }
        if within.is_zero() {
            return Err(PayloadError::NoTime);
        }
        let bytes = tokio::time::timeout(within.min(LONGEST), (self.fetch)(pointer.clone()))
            .await
            .unwrap_or_else(|elapsed| Err(PayloadError::Unavailable(elapsed.into())))?;
        if bytes.len() > LARGEST {
            return Err(PayloadError::Unusable(PayloadFault::TooLarge));
        }
        String::from_utf8(bytes).map_err(|_bytes| PayloadError::Unusable(PayloadFault::NotText))
    }
}

impl fmt::Debug for Payloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payloads").field("buckets", &self.buckets).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pointer(bucket: &str) -> S3Pointer {
        S3Pointer { s3_bucket_name: bucket.to_owned(), s3_key: "k".to_owned() }
    }

    fn holding(bytes: &[u8]) -> Payloads {
        let bytes = bytes.to_vec();
        let fetch = move |_pointer| -> Fetching {
            let bytes = bytes.clone();
            Box::pin(async move { Ok(bytes) })
        };
        Payloads::new(vec!["ours".to_owned()], Arc::new(fetch))
    }

    async fn error(payloads: &Payloads, bucket: &str, within: Duration) -> String {
        format!("{:?}", payloads.text(&pointer(bucket), within).await.unwrap_err())
    }

    #[tokio::test]
    async fn only_the_named_buckets_are_read() {
        let payloads = holding(b"{}");
        assert_eq!(payloads.text(&pointer("ours"), SECOND).await.unwrap(), "{}");
        for bucket in ["theirs", "Ours", "ours ", ""] {
            assert_eq!(error(&payloads, bucket, SECOND).await, "NotAllowed", "{bucket}");
        }
        assert_eq!(error(&Payloads::none(), "ours", SECOND).await, "NotAllowed");
    }

    #[tokio::test]
    async fn a_forbidden_bucket_is_told_even_without_time() {
        assert_eq!(error(&holding(b"{}"), "theirs", Duration::ZERO).await, "NotAllowed");
        assert_eq!(error(&holding(b"{}"), "ours", Duration::ZERO).await, "NoTime");
    }

    #[tokio::test]
    async fn what_is_no_text_or_too_large_is_of_no_use() {
        assert_eq!(error(&holding(b"\xff\xfe"), "ours", SECOND).await, "Unusable(NotText)");
        assert_eq!(error(&holding(&vec![b' '; LARGEST + 1]), "ours", SECOND).await, "Unusable(TooLarge)");
        assert!(holding(&vec![b' '; LARGEST]).text(&pointer("ours"), SECOND).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_with_the_time_that_is_left_or_after_six_seconds() {
        let silent = Payloads::new(vec!["ours".to_owned()], Arc::new(|_| Box::pin(std::future::pending())));
        for (within, waited) in [(2 * SECOND, 2 * SECOND), (3600 * SECOND, LONGEST)] {
            let began = tokio::time::Instant::now();
            assert!(error(&silent, "ours", within).await.starts_with("Unavailable"));
            assert_eq!(began.elapsed(), waited);
        }
    }
}
