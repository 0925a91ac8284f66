//! Tests of limits, turns and back-off, without a store.

use engine::SeededEntropy;

use super::*;

const NOW_MS: u64 = 1_000_000;

struct Fixture {
    outbox: Outbox,
    entropy: SeededEntropy,
    numbers: u64,
}

impl Fixture {
    fn new() -> Self {
        Self { outbox: Outbox::default(), entropy: SeededEntropy::new(1), numbers: 0 }
    }

    fn account(&self) -> AccountId {
        AccountId::issue(&self.entropy)
    }

    fn webhook(&self, account: &AccountId) -> WebhookId {
        let webhook = WebhookId::issue(&self.entropy);
        self.outbox.begin(webhook.clone(), account.clone());
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
        self.outbox.left(webhook, number, 0, &Left::Delivered, DeliveryState::default());
    }
}

#[test]
fn room_ends_for_a_webhook_an_account_and_all() {
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
    while total < limits::WEBHOOK_PENDING_IN_ALL_MAX {
        let other = fixture.account();
        let webhook = fixture.webhook(&other);
        total += fixture.add(&webhook, max);
    }
    let last = fixture.account();
    let last = fixture.webhook(&last);
    assert_eq!(fixture.add(&last, 1), 0);
    // Delivery of an event, and deletion of a webhook, free room.
    let turn = fixture.outbox.take_turn(NOW_MS).unwrap();
    let number = fixture.outbox.next(&turn, NOW_MS).unwrap();
    fixture.deliver(&turn, number);
    assert_eq!(fixture.add(&last, 2), 1);
    fixture.outbox.end(&first);
    assert_eq!(fixture.outbox.take_leftover(), Some(first));
    assert_eq!(fixture.add(&third, 1), 1);
}

#[test]
fn a_turn_goes_to_whoever_waited_longest_and_to_one_account_a_few_times() {
    let mut fixture = Fixture::new();
    let (ann, bob) = (fixture.account(), fixture.account());
    let of_ann: Vec<_> = (0..10).map(|_| fixture.webhook(&ann)).collect();
    for webhook in &of_ann {
        fixture.add(webhook, 1);
    }
    let of_bob = fixture.webhook(&bob);
    fixture.add(&of_bob, 1);
    let mut turns: Vec<_> = std::iter::from_fn(|| fixture.outbox.take_turn(NOW_MS)).collect();
    assert_eq!(turns.len(), limits::WEBHOOK_TURNS_PER_ACCOUNT_MAX + 1);
    assert!(turns.contains(&of_bob));
    turns.retain(|webhook| *webhook != of_bob);
    // A webhook whose turn ends with due events waits behind the others.
    fixture.outbox.end_turn(&turns[0], NOW_MS + 1);
    let next = fixture.outbox.take_turn(NOW_MS + 1).unwrap();
    assert!(!turns.contains(&next) && of_ann.contains(&next));
    assert_eq!(fixture.outbox.take_turn(NOW_MS + 1), None);
}

#[test]
fn the_oldest_that_is_due_comes_first_and_nothing_while_it_rests() {
    let mut fixture = Fixture::new();
    let ann = fixture.account();
    let webhook = fixture.webhook(&ann);
    fixture.add(&webhook, 3);
    let outbox = &fixture.outbox;
    assert_eq!(outbox.take_turn(NOW_MS), Some(webhook.clone()));
    assert_eq!(outbox.next(&webhook, NOW_MS), Some(1));
    outbox.left(&webhook, 1, 0, &Left::Waits(NOW_MS + 50), DeliveryState::default());
    assert_eq!(outbox.next(&webhook, NOW_MS + 49), Some(2));
    assert_eq!(outbox.next(&webhook, NOW_MS + 50), Some(1));
    assert_eq!(outbox.counts(&webhook), EventCounts { pending: 3, retrying: 1, dead: 0 });
    outbox.rest(&webhook, NOW_MS + 100);
    outbox.end_turn(&webhook, NOW_MS);
    assert_eq!(outbox.take_turn(NOW_MS + 99), None);
    // A new event does not end the back-off.
    fixture.add(&webhook, 1);
    let outbox = &fixture.outbox;
    assert_eq!(outbox.take_turn(NOW_MS + 99), None);
    assert_eq!(outbox.take_turn(NOW_MS + 100), Some(webhook.clone()));
    outbox.left(&webhook, 1, 1, &Left::Died, DeliveryState::default());
    assert_eq!(outbox.counts(&webhook), EventCounts { pending: 3, retrying: 0, dead: 1 });
    for number in 2..=4 {
        assert_eq!(outbox.next(&webhook, NOW_MS + 100), Some(number));
        fixture.deliver(&webhook, number);
    }
    outbox.end_turn(&webhook, NOW_MS + 100);
    assert!(!outbox.is_waiting());
    assert_eq!(outbox.counts(&webhook), EventCounts { pending: 0, retrying: 0, dead: 1 });
}

#[test]
fn another_destination_ends_the_rest() {
    let mut fixture = Fixture::new();
    let ann = fixture.account();
    let webhook = fixture.webhook(&ann);
    fixture.add(&webhook, 1);
    fixture.outbox.take_turn(NOW_MS);
    fixture.outbox.rest(&webhook, NOW_MS + 1_000);
    fixture.outbox.end_turn(&webhook, NOW_MS);
    assert_eq!(fixture.outbox.take_turn(NOW_MS), None);
    fixture.outbox.stir(&webhook, NOW_MS);
    assert_eq!(fixture.outbox.take_turn(NOW_MS), Some(webhook));
}
