//! What several tests stand on.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

pub(crate) mod aws;
pub(crate) mod cloud_control;
pub(crate) mod collector;
pub(crate) mod deployed_template;
pub(crate) mod dynamodb;
pub(crate) mod faulty;
pub(crate) mod order;
pub(crate) mod s3;
