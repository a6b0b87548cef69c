//! A Cloud Control endpoint that serves what a template would have deployed: the operations that the doctor calls, in
//! AWS JSON 1.0 over loopback.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::aws::{Reply, Service};

/// Resources in a page of a list: few, so that every list has several.
const PAGE: usize = 3;

/// The account behind the endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Properties by type and identifier.
    pub(crate) resources: BTreeMap<(String, String), Value>,
    /// Types that the caller may not read.
    pub(crate) denied: BTreeSet<String>,
}

/// The endpoint; it ends when dropped.
pub(crate) struct FakeCloudControl {
    service: Service,
    account: Arc<Mutex<Account>>,
}

impl FakeCloudControl {
    pub(crate) async fn start(account: Account) -> Self {
        let account = Arc::new(Mutex::new(account));
        let served = Arc::clone(&account);
        let service =
            Service::start(move |operation, request| answer(&served.lock().unwrap(), operation, request));
        Self { service: service.await, account }
    }

    pub(crate) fn url(&self) -> String {
        self.service.url()
    }

    /// From now on the account is this one.
    pub(crate) fn serve(&self, account: Account) {
        *self.account.lock().unwrap() = account;
    }
}

fn answer(account: &Account, operation: &str, request: &Value) -> Reply {
    let kind = request["TypeName"].as_str().unwrap();
    if account.denied.contains(kind) {
        return Reply::Refusal(
            "AccessDeniedException",
            format!("User: ops is not authorized to read {kind}"),
        );
    }
    match operation {
        "GetResource" => get(account, kind, request["Identifier"].as_str().unwrap()),
        "ListResources" => list(account, kind, request["NextToken"].as_str()),
        other => panic!("the doctor only reads, and asked for {other}"),
    }
}

fn get(account: &Account, kind: &str, identifier: &str) -> Reply {
    match account.resources.get(&(kind.to_owned(), identifier.to_owned())) {
        Some(properties) => Reply::Success(json!({
            "TypeName": kind,
            "ResourceDescription": { "Identifier": identifier, "Properties": properties.to_string() },
        })),
        None => Reply::Failure("ResourceNotFoundException"),
    }
}

fn list(account: &Account, kind: &str, token: Option<&str>) -> Reply {
    let from: usize = token.map_or(0, |token| token.parse().unwrap());
    let mut all = account.resources.keys().filter(|(its, _)| its == kind).skip(from);
    let page: Vec<Value> = all
        .by_ref()
        .take(PAGE)
        .map(|(_, identifier)| json!({ "Identifier": identifier, "Properties": "{}" }))
        .collect();
    let next = all.next().map(|_| (from + PAGE).to_string());
    Reply::Success(json!({ "TypeName": kind, "ResourceDescriptions": page, "NextToken": next }))
}
