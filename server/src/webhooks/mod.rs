//! Webhook delivery: a task for each webhook with due events.
//!
//! Events are delivered one at a time, the oldest first, over one connection as long as it lasts. A failure ends the
//! turn: after a back-off, delivery continues with the oldest due event, so that the order is preserved while a
//! destination is unavailable for some minutes; an event that fails persistently is overtaken. Guarantees: uploads
//! never wait for deliveries; messages are signed; logs contain hosts, never paths or queries. Non-goals: the queue
//! (catalog), and permitted destinations (`outbound`).

mod message;
mod schedule;

use std::sync::Arc;

use tokio::task::JoinSet;

use self::message::Message;
use crate::bridge::blocking;
use crate::catalog::{CatalogError, Failure, Letter, NextTry, Turn, Webhook};
use crate::limits;
use crate::outbound::{Answer, Line};
use crate::state::AppState;

const GONE: u16 = 410;
/// Reason for disabling a webhook whose destination responded with 410.
const GONE_REASON: &str = "the destination answered 410 Gone";

/// Result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// Status of the response, if any.
    pub status: Option<u16>,
    /// Reason why it does not count as delivered.
    pub error: Option<String>,
    /// Start of the response body.
    pub answer: String,
    pub duration_ms: u64,
}

/// Delivers due events, forever.
pub async fn keep_delivering(app: AppState) {
    let mut turns = JoinSet::new();
    loop {
        start_due(&app, &mut turns);
        // Due times follow the clock, which may differ from that of the timer.
        let look = async {
            match app.catalog.has_events_waiting() {
                true => tokio::time::sleep(limits::WEBHOOK_LOOK_WAIT).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(_) = turns.join_next() => {}
            () = app.catalog.events_changed() => {}
            () = look => {}
        }
    }
}

/// Delivers the currently due events, and returns when there are none.
pub async fn deliver_due(app: &AppState) {
    let mut turns = JoinSet::new();
    loop {
        start_due(app, &mut turns);
        if turns.join_next().await.is_none() {
            return;
        }
    }
}

/// Sends a test message immediately, whether or not the webhook is enabled. `None` while too many tests are running.
pub async fn test(app: &AppState, webhook: &Webhook) -> Option<Tested> {
    let _turn = app.webhook_tests.try_acquire().ok()?;
    let message = Message::test(app, webhook);
    let began_ms = app.clock.monotonic_ms();
    let posted = post(app, &mut None, webhook, &message).await;
    let duration_ms = app.clock.monotonic_ms() - began_ms;
    let answer = posted.as_ref().map(|answer| answer.text.clone()).unwrap_or_default();
    Some(match posted.and_then(taken) {
        Ok(status) => Tested { status: Some(status), error: None, answer, duration_ms },
        Err(Failure { status, error, answer }) => {
            Tested { status, error: Some(error), answer, duration_ms }
        }
    })
}

fn start_due(app: &AppState, turns: &mut JoinSet<()>) {
    while let Some(turn) = app.catalog.take_turn() {
        turns.spawn(go_on(app.clone(), Arc::new(turn)));
    }
}

/// Sends the due events of one webhook, until one fails or its turn ends.
async fn go_on(app: AppState, turn: Arc<Turn>) {
    let mut line = None;
    for _ in 0..limits::WEBHOOK_TURN_EVENTS {
        let next = {
            let turn = turn.clone();
            blocking(move || turn.next()).await
        };
        let went_on = match next {
            Ok(Some(letter)) => deliver(&app, &turn, &mut line, Arc::new(letter)).await,
            Ok(None) => return,
            Err(error) => Err(error),
        };
        match went_on {
            Ok(Delivery::Done) => {}
            Ok(Delivery::Failed) => return,
            Err(error) => {
                tracing::warn!(%error, "failed to read a webhook event or record its delivery");
                return;
            }
        }
    }
}

enum Delivery {
    Done,
    Failed,
}

async fn deliver(
    app: &AppState,
    turn: &Arc<Turn>,
    line: &mut Option<Line>,
    letter: Arc<Letter>,
) -> Result<Delivery, CatalogError> {
    let message = Message::of(app, &letter);
    let posted = post(app, line, &letter.webhook, &message).await;
    let retry_after = posted.as_ref().ok().filter(|it| schedule::wants_rest(it.status));
    let retry_after = retry_after.and_then(|answer| answer.retry_after);
    let noted = turn.clone();
    let failure = match posted.and_then(taken) {
        Ok(status) => {
            blocking(move || noted.delivered(&letter, status)).await?;
            app.measures.webhooks_delivered.add(1);
            return Ok(Delivery::Done);
        }
        Err(failure) => failure,
    };
    let now_ms = app.clock.unix_ms();
    let asked_ms = retry_after.map_or(0, |it| schedule::asked_until_ms(it, now_ms));
    let next = schedule::next_try(letter.event.attempts, now_ms, asked_ms, app.entropy.number());
    app.measures.webhooks_failed.add(1);
    if let NextTry::Never = next {
        app.measures.webhooks_given_up.add(1);
    }
    let failures = turn.note_failure();
    turn.rest_until(schedule::rest_until_ms(failures, next, now_ms).max(asked_ms));
    tell(&letter, &failure, next);
    let catalog = app.catalog.clone();
    blocking(move || {
        let id = letter.webhook.id.clone();
        noted.failed(&letter, &failure, next)?;
        match failure.status {
            Some(GONE) => catalog.disable_webhook(&id, GONE_REASON),
            _ => Ok(()),
        }
    })
    .await?;
    Ok(Delivery::Failed)
}

fn tell(letter: &Letter, failure: &Failure, next: NextTry) {
    let Letter { webhook, event, .. } = letter;
    let (host, webhook) = (webhook.destination.origin().host(), webhook.id.as_str());
    let (event, error) = (event.id.as_str(), failure.error.as_str());
    match next {
        NextTry::NotBefore(_) => {
            tracing::debug!(webhook, host, event, error, "webhook delivery failed; will retry")
        }
        NextTry::Never => {
            tracing::warn!(webhook, host, event, error, "webhook event moved to dead letters")
        }
    }
}

async fn post(
    app: &AppState,
    line: &mut Option<Line>,
    webhook: &Webhook,
    message: &Message,
) -> Result<Answer, Failure> {
    let Message { headers, body } = message;
    let posted = app.outbound.post(line, &webhook.destination, headers, body.clone()).await;
    posted.map_err(|error| Failure {
        status: None,
        error: error.to_string().chars().take(limits::WEBHOOK_ERROR_CHARS_MAX).collect(),
        answer: String::new(),
    })
}

/// Returns whether a response acknowledges the message: any 2xx, and nothing else.
fn taken(answer: Answer) -> Result<u16, Failure> {
    let Answer { status, text, .. } = answer;
    match status {
        200..=299 => Ok(status),
        300..=399 => Err(Failure {
            status: Some(status),
            error: format!("response status {status}; redirects are not followed"),
            answer: text,
        }),
        _ => Err(Failure {
            status: Some(status),
            error: format!("response status {status}"),
            answer: text,
        }),
    }
}
