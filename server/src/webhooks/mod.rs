//! Webhooks told what happened: whoever has something due is sent to, each in a task of its own.
//!
//! One event at a time goes to a webhook, the oldest first, over one connection as long as it holds. A failure ends the
//! turn: the webhook rests, and then goes on with the oldest that is due, so that order is kept while a destination is
//! away for some minutes; an event that fails on and on is overtaken.
//! Promises: an upload never waits for any of this; what is sent is signed; logs name hosts, never what stands behind
//! them. Never here: what waits (the catalog), and where it may go (`outbound`).

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
/// Why a webhook was disabled whose destination answered so.
const GONE_REASON: &str = "the destination answered 410 Gone";

/// What came of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// What the destination answered, where it did.
    pub status: Option<u16>,
    /// Why it does not count as delivered.
    pub error: Option<String>,
    /// The beginning of the body of its answer.
    pub answer: String,
    pub duration_ms: u64,
}

/// Delivers what becomes due, for ever.
pub async fn keep_delivering(app: AppState) {
    let mut turns = JoinSet::new();
    loop {
        start_due(&app, &mut turns);
        // The moment at which something is due is told by the clock, which may be another one than the timer's.
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

/// Delivers what is due now, and ends when nothing is.
pub async fn deliver_due(app: &AppState) {
    let mut turns = JoinSet::new();
    loop {
        start_due(app, &mut turns);
        if turns.join_next().await.is_none() {
            return;
        }
    }
}

/// Sends a message that says only that it is a test, at once, whether or not the webhook is enabled. None while too
/// many tests are going on.
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

/// Sends what is due to one webhook, until something fails or others shall have their turn.
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

/// Whether an answer means that the message was taken: any 2xx, and nothing else.
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
