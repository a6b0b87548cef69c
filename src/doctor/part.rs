//! One part of a deployment: read, not there, or not readable.

/// What is known of a part. A rule about a part that was not read is silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part<T> {
    /// It is there and was read.
    Read(T),
    /// There is none.
    #[default]
    Absent,
    /// It may be there; it could not be read.
    Unread,
}

impl<T> Part<T> {
    /// The part, if it was read.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Read(part) => Some(part),
            Self::Absent | Self::Unread => None,
        }
    }

    /// Whether it is certain that there is none.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Read(_) | Self::Unread => false,
        }
    }

    /// The part, or why there is none: it was not `unread`, then it does not exist.
    pub(super) fn of(part: Option<T>, unread: bool) -> Self {
        match part {
            Some(part) => Self::Read(part),
            None if unread => Self::Unread,
            None => Self::Absent,
        }
    }
}
