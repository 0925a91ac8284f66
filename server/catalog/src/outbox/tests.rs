//! Tests of limits, turns and back-off, without a store.

use engine::rng::SeededRng;

use super::*;

const NOW_MS: u64 = 1_000_000;

struct Fixture {
    outbox: Outbox,
    rng: SeededRng,
    numbers: u64,
}

impl Fixture {
    fn new() -> Self {
        Self { outbox: Outbox::default(), rng: SeededRng::new(1), numbers: 0 }
    }

    fn account(&self) -> AccountId {
        AccountId::issue(&self.rng)
    }

    fn webhook(&self, account: &AccountId) -> WebhookId {
        let webhook = WebhookId::issue(&self.rng);
        self.outbox.add_queue(webhook.clone(), account.clone());
        webhook
    }

    /// Adds up to `count` events within the limits; returns how many were added.
    fn add(&mut self, webhook: &WebhookId, count: usize) -> usize {
        for added in 0..count {
            if !self.outbox.reserve(webhook) {
                return added;
            }
            self.numbers += 1;
            self.outbox.confirm(&[(webhook.clone(), self.numbers)], NOW_MS);
        }
        count
    }

    fn deliver(&self, webhook: &WebhookId, number: u64) {
        self.outbox.record_outcome(
            webhook,
            number,
            0,
            &EventOutcome::Delivered,
            DeliveryState::default(),
        );
    }
}

#[test]
fn outbox_limits_per_webhook_account_and_total() {
    let mut fixture = Fixture::new();
    let ann = fixture.account();
    let [first, second, third] = [(); 3].map(|()| fixture.webhook(&ann));
    let max = limits::WEBHOOK_PENDING_MAX;
    assert_eq!(fixture.add(&first, max + 1), max);
    assert_eq!(fixture.outbox.state(&first).dropped, 1);
    // Reservations count, and are released when the batch fails.
    assert_eq!(fixture.add(&second, max - 1), max - 1);
    assert!(fixture.outbox.reserve(&second) && !fixture.outbox.reserve(&second));
    fixture.outbox.release(&[(second.clone(), 0)]);
    assert_eq!(fixture.add(&second, 2), 1);
    // The account is at its limit, others are not.
    assert_eq!(2 * max, limits::WEBHOOK_PENDING_PER_ACCOUNT_MAX);
    assert_eq!(fixture.add(&third, 1), 0);
    let mut total = 2 * max;
    while total < limits::WEBHOOK_PENDING_TOTAL_MAX {
        let other = fixture.account();
        let webhook = fixture.webhook(&other);
        total += fixture.add(&webhook, max);
    }
    let last = fixture.account();
    let last = fixture.webhook(&last);
    assert_eq!(fixture.add(&last, 1), 0);
    // Delivery of an event, and deletion of a webhook, free room.
    let turn = fixture.outbox.lease_webhook(NOW_MS).unwrap();
    let number = fixture.outbox.next(&turn, NOW_MS).unwrap();
    fixture.deliver(&turn, number);
    assert_eq!(fixture.add(&last, 2), 1);
    fixture.outbox.remove_queue(&first);
    assert_eq!(fixture.outbox.take_orphan(), Some(first));
    assert_eq!(fixture.add(&third, 1), 1);
}

#[test]
fn webhook_lease_is_fair_across_accounts() {
    let mut fixture = Fixture::new();
    let (ann, bob) = (fixture.account(), fixture.account());
    let of_ann: Vec<_> = (0..10).map(|_| fixture.webhook(&ann)).collect();
    for webhook in &of_ann {
        fixture.add(webhook, 1);
    }
    let of_bob = fixture.webhook(&bob);
    fixture.add(&of_bob, 1);
    let mut turns: Vec<_> = std::iter::from_fn(|| fixture.outbox.lease_webhook(NOW_MS)).collect();
    assert_eq!(turns.len(), limits::WEBHOOK_DELIVERIES_PER_ACCOUNT_MAX + 1);
    assert!(turns.contains(&of_bob));
    turns.retain(|webhook| *webhook != of_bob);
    // A webhook whose turn ends with due events waits behind the others.
    fixture.outbox.release_webhook(&turns[0], NOW_MS + 1);
    let next = fixture.outbox.lease_webhook(NOW_MS + 1).unwrap();
    assert!(!turns.contains(&next) && of_ann.contains(&next));
    assert_eq!(fixture.outbox.lease_webhook(NOW_MS + 1), None);
}

#[test]
fn oldest_due_event_is_first_and_backoff_is_honored() {
    let mut fixture = Fixture::new();
    let ann = fixture.account();
    let webhook = fixture.webhook(&ann);
    fixture.add(&webhook, 3);
    let outbox = &fixture.outbox;
    assert_eq!(outbox.lease_webhook(NOW_MS), Some(webhook.clone()));
    assert_eq!(outbox.next(&webhook, NOW_MS), Some(1));
    outbox.record_outcome(
        &webhook,
        1,
        0,
        &EventOutcome::Retry(NOW_MS + 50),
        DeliveryState::default(),
    );
    assert_eq!(outbox.next(&webhook, NOW_MS + 49), Some(2));
    assert_eq!(outbox.next(&webhook, NOW_MS + 50), Some(1));
    assert_eq!(outbox.counts(&webhook), EventCounts { pending: 3, retrying: 1, dead: 0 });
    outbox.back_off(&webhook, NOW_MS + 100);
    outbox.release_webhook(&webhook, NOW_MS);
    assert_eq!(outbox.lease_webhook(NOW_MS + 99), None);
    // A new event does not end the back-off.
    fixture.add(&webhook, 1);
    let outbox = &fixture.outbox;
    assert_eq!(outbox.lease_webhook(NOW_MS + 99), None);
    assert_eq!(outbox.lease_webhook(NOW_MS + 100), Some(webhook.clone()));
    outbox.record_outcome(&webhook, 1, 1, &EventOutcome::DeadLettered, DeliveryState::default());
    assert_eq!(outbox.counts(&webhook), EventCounts { pending: 3, retrying: 0, dead: 1 });
    for number in 2..=4 {
        assert_eq!(outbox.next(&webhook, NOW_MS + 100), Some(number));
        fixture.deliver(&webhook, number);
    }
    outbox.release_webhook(&webhook, NOW_MS + 100);
    assert!(!outbox.is_waiting());
    assert_eq!(outbox.counts(&webhook), EventCounts { pending: 0, retrying: 0, dead: 1 });
}

#[test]
fn changed_destination_resets_the_backoff() {
    let mut fixture = Fixture::new();
    let ann = fixture.account();
    let webhook = fixture.webhook(&ann);
    fixture.add(&webhook, 1);
    fixture.outbox.lease_webhook(NOW_MS);
    fixture.outbox.back_off(&webhook, NOW_MS + 1_000);
    fixture.outbox.release_webhook(&webhook, NOW_MS);
    assert_eq!(fixture.outbox.lease_webhook(NOW_MS), None);
    fixture.outbox.reset_backoff(&webhook, NOW_MS);
    assert_eq!(fixture.outbox.lease_webhook(NOW_MS), Some(webhook));
}
