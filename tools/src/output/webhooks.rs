//! Text output of webhooks and their deliveries.

use server::management::{DeadLettersView, WebhookTestedView, WebhookView};

use super::table::Show::{Cut, Minute, Whole, Wide};
use super::table::{Column, table};
use super::{number, plain};

const WEBHOOK: &[Column] = &[
    ("ID", Whole),
    ("BUCKET", Wide),
    ("URL", Cut),
    ("EVENTS", Wide),
    ("PREFIX", Wide),
    ("ENABLED", Whole),
    ("PENDING", Whole),
    ("RETRYING", Wide),
    ("FAILED", Whole),
    ("DROPPED", Wide),
    ("DELIVERED", Wide),
    ("STATUS", Whole),
    ("ERROR", Wide),
];

pub(super) fn webhooks_text(webhooks: &[WebhookView], wide: bool) -> String {
    let row = |webhook: &WebhookView| {
        let error = webhook.disabled_reason.as_ref().or(webhook.last_error.as_ref());
        vec![
            webhook.id.clone(),
            webhook.bucket_name.clone(),
            webhook.url.clone(),
            webhook.events.join(","),
            webhook.prefix.clone(),
            if webhook.enabled { "yes" } else { "no" }.to_owned(),
            webhook.pending_count.to_string(),
            webhook.retrying_count.to_string(),
            webhook.dead_letter_count.to_string(),
            webhook.dropped_count.to_string(),
            webhook.last_delivery_at.clone().unwrap_or_default(),
            number(webhook.last_status.map(u64::from)),
            error.cloned().unwrap_or_default(),
        ]
    };
    table(WEBHOOK, &webhooks.iter().map(row).collect::<Vec<_>>(), wide)
}

pub(super) fn tested_text(tested: &WebhookTestedView) -> String {
    let outcome = match (&tested.delivery_error, tested.status) {
        (Some(error), _) => format!("not delivered: {}", plain(error)),
        (None, Some(status)) => format!("delivered: response status {status}"),
        (None, None) => "delivered".to_owned(),
    };
    let mut text = format!("{outcome}, after {} ms\n", tested.duration_ms);
    for line in tested.answer.lines() {
        text.push_str(&format!("  {}\n", plain(line)));
    }
    text
}

const DEAD_LETTER: &[Column] = &[
    ("EVENT", Whole),
    ("TYPE", Whole),
    ("KEY", Wide),
    ("HAPPENED", Minute),
    ("TRIES", Wide),
    ("GIVEN UP", Wide),
    ("STATUS", Whole),
    ("ERROR", Cut),
];

pub(super) fn dead_letters_text(letters: &DeadLettersView, wide: bool) -> String {
    let rows = letters.dead_letters.iter().map(|letter| {
        vec![
            letter.event_id.clone(),
            letter.kind.clone(),
            letter.key.clone(),
            letter.timestamp.clone(),
            letter.attempt_count.to_string(),
            letter.given_up_at.clone(),
            number(letter.status.map(u64::from)),
            letter.delivery_error.clone(),
        ]
    });
    table(DEAD_LETTER, &rows.collect::<Vec<_>>(), wide)
}
