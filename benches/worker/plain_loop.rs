//! The loop of most guides: receive ten, process them, delete them in one call, and only then receive again.

use aws_sdk_sqs::{Client, types::DeleteMessageBatchRequestEntry};
use tokio::task::JoinSet;

/// Runs until the queue is empty.
pub(crate) async fn run(loops: u32, client: &Client, url: &str) {
    let mut tasks = JoinSet::new();
    for _ in 0..loops {
        tasks.spawn(Box::pin(drain(client.clone(), url.to_owned())));
    }
    tasks.join_all().await;
}

async fn drain(client: Client, url: String) {
    loop {
        let call = client.receive_message().queue_url(&url).max_number_of_messages(10).wait_time_seconds(0);
        let messages = Box::pin(call.send()).await.expect("the queue answers").messages.unwrap_or_default();
        if messages.is_empty() {
            return;
        }
        let mut call = client.delete_message_batch().queue_url(&url);
        for (place, message) in messages.into_iter().enumerate() {
            let order: serde_json::Value =
                serde_json::from_str(&message.body.unwrap_or_default()).expect("a valid order");
            std::hint::black_box(order);
            let entry = DeleteMessageBatchRequestEntry::builder()
                .id(place.to_string())
                .set_receipt_handle(message.receipt_handle);
            call = call.entries(entry.build().expect("complete"));
        }
        Box::pin(call.send()).await.expect("the queue answers");
    }
}
