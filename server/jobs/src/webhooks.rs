//! Webhook delivery: a task for each webhook with due events.
//!
//! Events are delivered one at a time, the oldest first, over one connection as long as it lasts. A failure ends the
//! lease: after a back-off, delivery continues with the oldest due event, so that the order is preserved while a
//! destination is unavailable for some minutes; an event that fails persistently is overtaken. Guarantees: uploads
//! never wait for deliveries; messages are signed; logs contain hosts, never paths or queries. Non-goals: the queue
//! (catalog), and permitted destinations (`outbound`).

mod message;
mod schedule;

use std::sync::Arc;

use catalog::{CatalogError, DeliveryFailure, DeliveryLease, DueEvent, NextAttempt, Webhook};
use outbound::{HttpReply, KeepAlive};
use tokio::task::JoinSet;
use usage::task::blocking;

use self::message::WebhookMessage;
use crate::Context;
use crate::limits;

const GONE: u16 = 410;
/// Reason for disabling a webhook whose destination responded with 410.
const GONE_REASON: &str = "the destination answered 410 Gone";

/// Result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// Status of the response, if any.
    pub status: Option<u16>,
    /// Reason why it does not count as delivered.
    pub error: Option<String>,
    /// Start of the response body.
    pub answer: String,
    pub duration_ms: u64,
}

/// Delivers due events, forever.
pub async fn run_sender(context: Arc<Context>) {
    let mut leases = JoinSet::new();
    loop {
        start_due(&context, &mut leases);
        // Due times follow the clock, which may differ from that of the timer.
        let poll = async {
            match context.catalog.deliveries().has_waiting() {
                true => tokio::time::sleep(limits::WEBHOOK_POLL_INTERVAL).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(_) = leases.join_next() => {}
            () = context.catalog.deliveries().changed() => {}
            () = poll => {}
        }
    }
}

/// Delivers the currently due events, and returns when there are none.
pub async fn deliver_due(context: &Arc<Context>) {
    let mut leases = JoinSet::new();
    loop {
        start_due(context, &mut leases);
        if leases.join_next().await.is_none() {
            return;
        }
    }
}

/// Sends a test message immediately, whether or not the webhook is enabled. `None` while too many tests are running.
pub async fn test(context: &Context, webhook: &Webhook) -> Option<TestResult> {
    let _permit = context.webhook_tests.try_acquire().ok()?;
    let message = WebhookMessage::test(context, webhook);
    let began_ms = context.clock.monotonic_ms();
    let posted = post(context, &mut None, webhook, &message).await;
    let duration_ms = context.clock.monotonic_ms() - began_ms;
    let answer = posted.as_ref().map(|reply| reply.text.clone()).unwrap_or_default();
    Some(match posted.and_then(acknowledged) {
        Ok(status) => TestResult { status: Some(status), error: None, answer, duration_ms },
        Err(DeliveryFailure { status, error, answer }) => {
            TestResult { status, error: Some(error), answer, duration_ms }
        }
    })
}

fn start_due(context: &Arc<Context>, leases: &mut JoinSet<()>) {
    while let Some(lease) = context.catalog.deliveries().lease() {
        leases.spawn(deliver_leased(context.clone(), Arc::new(lease)));
    }
}

/// Sends the due events of one webhook, until one fails or the lease ends.
async fn deliver_leased(context: Arc<Context>, lease: Arc<DeliveryLease>) {
    let mut connection = None;
    for _ in 0..limits::WEBHOOK_LEASE_EVENTS_MAX {
        let next = {
            let lease = lease.clone();
            blocking(move || lease.next()).await
        };
        let outcome = match next {
            Ok(Some(due)) => deliver(&context, &lease, &mut connection, Arc::new(due)).await,
            Ok(None) => return,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(DeliveryOutcome::Done) => {}
            Ok(DeliveryOutcome::Failed) => return,
            Err(error) => {
                tracing::warn!(%error, "failed to read a webhook event or record its delivery");
                return;
            }
        }
    }
}

enum DeliveryOutcome {
    Done,
    Failed,
}

async fn deliver(
    context: &Arc<Context>,
    lease: &Arc<DeliveryLease>,
    connection: &mut Option<KeepAlive>,
    due: Arc<DueEvent>,
) -> Result<DeliveryOutcome, CatalogError> {
    let message = WebhookMessage::for_event(context, &due);
    let posted = post(context, connection, &due.webhook, &message).await;
    let retry_after = posted.as_ref().ok().filter(|it| schedule::should_back_off(it.status));
    let retry_after = retry_after.and_then(|reply| reply.retry_after);
    let leased = lease.clone();
    let failure = match posted.and_then(acknowledged) {
        Ok(status) => {
            blocking(move || leased.record_delivered(&due, status)).await?;
            context.counters.webhooks_delivered.add(1);
            return Ok(DeliveryOutcome::Done);
        }
        Err(failure) => failure,
    };
    let now_ms = context.clock.unix_ms();
    let asked_ms = retry_after.map_or(0, |it| schedule::retry_after_ms(it, now_ms));
    let next = schedule::next_attempt(due.event.attempts, now_ms, asked_ms, context.rng.next_u64());
    context.counters.webhooks_failed.add(1);
    if let NextAttempt::DeadLetter = next {
        context.counters.webhooks_given_up.add(1);
    }
    let failures = lease.record_failure();
    lease.back_off_until(schedule::backoff_until_ms(failures, next, now_ms).max(asked_ms));
    log_failure(&due, &failure, next);
    let catalog = context.catalog.clone();
    blocking(move || {
        let id = due.webhook.id.clone();
        leased.record_failed(&due, &failure, next)?;
        match failure.status {
            Some(GONE) => catalog.webhooks().disable(&id, GONE_REASON),
            _ => Ok(()),
        }
    })
    .await?;
    Ok(DeliveryOutcome::Failed)
}

fn log_failure(due: &DueEvent, failure: &DeliveryFailure, next: NextAttempt) {
    let DueEvent { webhook, event, .. } = due;
    let (host, webhook) = (webhook.destination.origin().host(), webhook.id.as_str());
    let (event, error) = (event.id.as_str(), failure.error.as_str());
    match next {
        NextAttempt::NotBefore(_) => {
            tracing::debug!(webhook, host, event, error, "webhook delivery failed; will retry")
        }
        NextAttempt::DeadLetter => {
            tracing::warn!(webhook, host, event, error, "webhook event moved to dead letters")
        }
    }
}

async fn post(
    context: &Context,
    connection: &mut Option<KeepAlive>,
    webhook: &Webhook,
    message: &WebhookMessage,
) -> Result<HttpReply, DeliveryFailure> {
    let WebhookMessage { headers, body } = message;
    let posted =
        context.webhook_client.post(connection, &webhook.destination, headers, body.clone()).await;
    posted.map_err(|error| DeliveryFailure {
        status: None,
        error: error.to_string().chars().take(limits::WEBHOOK_ERROR_CHARS_MAX).collect(),
        answer: String::new(),
    })
}

/// Returns whether a response acknowledges the message: any 2xx, and nothing else.
fn acknowledged(reply: HttpReply) -> Result<u16, DeliveryFailure> {
    let HttpReply { status, text, .. } = reply;
    match status {
        200..=299 => Ok(status),
        300..=399 => Err(DeliveryFailure {
            status: Some(status),
            error: format!("response status {status}; redirects are not followed"),
            answer: text,
        }),
        _ => Err(DeliveryFailure {
            status: Some(status),
            error: format!("response status {status}"),
            answer: text,
        }),
    }
}
