//! Stand-ins for what is around the function in the cloud, so that the very binary one deploys runs on one
//! machine. Everything listens on loopback only.
pub mod sqs_endpoint;
