//! Lists: a query on the sparse index, or a scan for what no owner marked.

use super::{
    DynamoDbLedger,
    item::{self, Item, number, text},
};
use crate::{
    clock::Timestamp,
    ledger::{LedgerError, Listed, Overview, Selection, State},
};

impl Overview for DynamoDbLedger {
    async fn list(
        &self,
        selection: Selection,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<Listed>, LedgerError> {
        let mut listed: Vec<(Timestamp, Listed)> = Vec::new();
        let mut start = None;
        loop {
            let (items, next) = match selection {
                Selection::Attention(attention) => self.marked(attention.as_str(), before, start).await?,
                Selection::Abandoned { now } => self.abandoned(now, before, start).await?,
            };
            listed.extend(items.iter().filter_map(read));
            start = next.filter(|key| !key.is_empty());
            // The index is ordered by age, a scan is not.
            let enough = matches!(selection, Selection::Attention(_)) && listed.len() >= limit;
            if start.is_none() || enough {
                break;
            }
        }
        listed.sort_by_key(|(changed_at, _)| *changed_at);
        Ok(listed.into_iter().take(limit).map(|(_, listed)| listed).collect())
    }
}

type Page = (Vec<Item>, Option<Item>);

impl DynamoDbLedger {
    async fn marked(
        &self,
        attention: &str,
        before: Timestamp,
        start: Option<Item>,
    ) -> Result<Page, LedgerError> {
        let call = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("attention")
            .key_condition_expression("#attention = :attention AND #changed < :before")
            .expression_attribute_names("#attention", "attention")
            .expression_attribute_names("#changed", "state_changed_at")
            .expression_attribute_values(":attention", text(attention))
            .expression_attribute_values(":before", number(before.as_millis()))
            .set_exclusive_start_key(start);
        let page = Box::pin(call.send()).await.map_err(|error| self.failed(error))?;
        Ok((page.items.unwrap_or_default(), page.last_evaluated_key))
    }

    async fn abandoned(
        &self,
        now: Timestamp,
        before: Timestamp,
        start: Option<Item>,
    ) -> Result<Page, LedgerError> {
        let filter = "#state IN (:claimed, :prepared, :sent) AND #until < :now AND #changed < :before";
        let call = self
            .client
            .scan()
            .table_name(&self.table)
            .filter_expression(filter)
            .expression_attribute_names("#state", "state")
            .expression_attribute_names("#until", "lease_until")
            .expression_attribute_names("#changed", "state_changed_at")
            .expression_attribute_values(":claimed", text(State::Claimed.as_str()))
            .expression_attribute_values(":prepared", text(State::Prepared.as_str()))
            .expression_attribute_values(":sent", text(State::Sent.as_str()))
            .expression_attribute_values(":now", number(now.as_millis()))
            .expression_attribute_values(":before", number(before.as_millis()))
            .set_exclusive_start_key(start);
        let page = Box::pin(call.send()).await.map_err(|error| self.failed(error))?;
        Ok((page.items.unwrap_or_default(), page.last_evaluated_key))
    }
}

/// A row with its age; rows that are no orders are left out.
fn read(item: &Item) -> Option<(Timestamp, Listed)> {
    let changed_at = item.get("state_changed_at")?.as_n().ok()?.parse().ok()?;
    let listed = Listed { order_id: item::order_id(item)?, entry: item::found(Some(item)) };
    Some((Timestamp::from_millis(changed_at), listed))
}
