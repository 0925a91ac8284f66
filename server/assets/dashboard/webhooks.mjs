// Webhooks of a bucket: their status, tests, and events that could not be delivered.

import { filesAddress } from "./address.mjs";
import { ask, field, open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { complain, note } from "./live.mjs";
import { createWebhook, deadLetters, deleteWebhook, editWebhook, forgetDeadLetters, retryDeadLetters, testWebhook, webhook, webhooks } from "./manage.mjs";
import { askFirst, badge, button, facts, nothing, page, paged, panel, part, snippet, tellOnce, tick, when } from "./parts.mjs";
import { count, number } from "./text.mjs";

/** Event types with their labels. @type {[string, string][]} */
const EVENTS = [
  ["s3:ObjectCreated:*", "Any upload"], ["s3:ObjectRemoved:*", "Any deletion"], ["s3:LifecycleExpiration:*", "Any expiry"],
  ["s3:ObjectCreated:Post", "Uploaded by form"], ["s3:ObjectCreated:Put", "Uploaded to a presigned URL"],
  ["s3:ObjectCreated:CompleteMultipartUpload", "Resumable upload completed"], ["s3:ObjectCreated:Copy", "Moved, copied or restored"],
];

/** @param {any} place */
export function view(place) {
  return place.key === "" ? all(place.bucket) : one(place.bucket, place.key);
}

/** @param {string} bucket */
function all(bucket) {
  const list = part(() => webhooks(bucket), (found) => (found.length === 0
    ? nothing("bell", "No webhooks yet", "Get a signed JSON request for each uploaded or deleted file.", make("p", { class: "buttons" }, button("New webhook", () => edit(bucket, null, list), { class: "primary", image: "plus" })))
    : found.map((it) => card(bucket, it, list))));
  return page(`${bucket} webhooks`, {
    about: ["Notifies your server about changes in ", make("a", { href: filesAddress(bucket) }, bucket), "."],
    actions: [button("New webhook", () => edit(bucket, null, list), { class: "primary", image: "plus" })],
  }, list.element);
}

/** @param {any} it */
function state(it) {
  if (!it.enabled) return badge(it.disabledReason ? "Disabled by the server" : "Disabled", "warn");
  if (it.retryingCount > 0) return badge("Failing", "bad");
  return badge(it.lastDeliveryAt ? "Delivering" : "No deliveries yet", it.lastDeliveryAt ? "good" : "");
}

/** @param {string} bucket @param {any} it @param {{load: () => any}} list */
function card(bucket, it, list) {
  const turn = async () => {
    await editWebhook(bucket, it.id, { enabled: !it.enabled }).catch(complain);
    list.load();
  };
  return panel(it.url, {
    class: "webhook", about: [state(it), ` ${it.disabledReason ?? ""}`],
    actions: [
      button("Send test", () => test(bucket, it), { name: `test-${it.id}` }),
      button(it.enabled ? "Disable" : "Enable", turn, { name: `turn-${it.id}` }),
      button("Edit", () => edit(bucket, it, list), { name: `edit-${it.id}` }),
      button("Delete", () => askFirst("Delete webhook", `Stops notifying ${it.url} and discards ${count(it.pendingCount, "pending event")}.`, "Delete webhook", async () => {
        await deleteWebhook(bucket, it.id);
        list.load();
      }), { class: "danger", name: `delete-${it.id}` }),
    ],
  }, facts([
    ["Events", make("span", { class: "badges" }, it.events.map((/** @type {string} */ name) => badge(name.replace(/^s3:/, ""))))],
    ["Files", it.prefix ? make("code", null, it.prefix) : "All files"],
    ["Pending", [number(it.pendingCount), it.retryingCount > 0 && make("small", null, ` (${number(it.retryingCount)} retrying)`)]],
    ["Failed", it.deadLetterCount > 0 ? make("a", { href: `/-/webhooks/${encodeURIComponent(bucket)}/${it.id}` }, `${count(it.deadLetterCount, "event")} · review`) : "None"],
    ["Discarded", it.droppedCount > 0 ? badge(count(it.droppedCount, "event"), "bad") : "None"],
    ["Last attempt", [when(it.lastAttemptAt), it.lastStatus && ` status ${it.lastStatus}`, it.lastError && make("small", null, ` ${it.lastError}`)]],
    ["Last delivery", when(it.lastDeliveryAt)],
  ]));
}

/** @param {string} bucket @param {any} it @param {{load: () => any}} list */
function edit(bucket, it, list) {
  ask(it ? "Edit webhook" : "New webhook", [
    field("URL", { name: "url", type: "url", required: true, maxlength: 2048, value: it?.url ?? "", spellcheck: "false", autocapitalize: "none" }, "Receives POST requests. Private addresses need your operator's permission (--webhook-allow)."),
    make("fieldset", { class: "stacked" }, make("legend", null, "Events"), EVENTS.map(([name, what]) => tick(what, { name, checked: it ? it.events.includes(name) : name === "s3:ObjectCreated:*" }, name.slice(3)))),
    field("Key prefix (optional)", { name: "prefix", maxlength: 1024, value: it?.prefix ?? "", placeholder: "calls/", spellcheck: "false", autocapitalize: "none" }),
  ], it ? "Save" : "Create", async (values) => {
    const known = EVENTS.map(([name]) => name);
    const others = (it?.events ?? []).filter((/** @type {string} */ name) => !known.includes(name));
    const events = [...known.filter((name) => /** @type {any} */ (values)[name] !== undefined), ...others];
    if (events.length === 0) throw new Error("Select at least one event.");
    const body = { url: values.url, events, prefix: values.prefix };
    const { secret } = await (it ? editWebhook(bucket, it.id, body) : createWebhook(bucket, body));
    list.load();
    return () => secret && tellOnce("Webhook signing secret", "Save this secret now; it will not be shown again. Use it to verify requests.", snippet("Secret", secret),
      make("p", null, "Requests follow Standard Webhooks; use its libraries to verify signatures."));
  });
}

/** @param {string} bucket @param {any} it */
async function test(bucket, it) {
  const waiting = note(`Sending test to ${new URL(it.url).host}…`, null, { seconds: 15 });
  try {
    const { delivered, status, deliveryError, answer, durationMs } = await testWebhook(bucket, it.id);
    open(delivered ? "Test delivered" : "Test failed", [make("div", { class: "report" }, facts([
      ["Response", status ?? "None"], ["Duration", `${number(durationMs)} ms`], ...(deliveryError ? [/** @type {[string, string]} */ (["Error", deliveryError])] : []),
    ]), answer ? make("pre", { class: "answer", tabindex: "0", role: "group", "aria-label": "Response body" }, answer) : null)]);
  } catch (error) {
    complain(error, "Couldn't send test");
  }
  waiting.close();
}

/** The failed events of one webhook. @param {string} bucket @param {string} id */
function one(bucket, id) {
  const head = part(() => webhook(bucket, id), (it) => [
    facts([["URL", make("code", null, it.url)], ["Status", state(it)], ["Pending", number(it.pendingCount)]]),
    make("p", { class: "buttons" },
      button("Retry all", () => act(() => retryDeadLetters(bucket, id).then(({ retriedCount }) => note(`Retrying ${count(retriedCount, "event")}.`))), { class: "primary", image: "again", disabled: it.deadLetterCount === 0 }),
      button("Discard all", () => askFirst("Discard failed events", "These events will not be delivered.", "Discard events", async () => {
        await forgetDeadLetters(bucket, id);
        await act(async () => {});
      }), { class: "danger", disabled: it.deadLetterCount === 0 })),
  ]);
  const list = paged("Failed events", [["Event"], ["File", "wide"], ["Time"], ["Attempts", "number"], ["Error", "wide"], ["Actions", "act"]], async (cursor) => {
    const answer = await deadLetters(bucket, id, cursor);
    return { cursor: answer.nextCursor, rows: answer.deadLetters.map((/** @type {any} */ it) => [
      it.type, make("code", null, it.key), when(it.timestamp), number(it.attemptCount),
      [it.status ? `${it.status} ` : "", it.deliveryError, it.answer && make("details", null, make("summary", null, "Response body"), make("pre", { class: "answer", tabindex: "0" }, it.answer))],
      make("span", { class: "buttons" },
        button("Retry", () => act(() => retryDeadLetters(bucket, id, it.eventId)), { name: `again-${it.eventId}`, "aria-label": `Retry ${it.key}` }),
        button("Discard", () => act(() => forgetDeadLetters(bucket, id, it.eventId)), { name: `forget-${it.eventId}`, "aria-label": `Discard ${it.key}` })),
    ]) };
  }, () => nothing("check", "No failed events", "Events that can't be delivered for about three days appear here."));
  const act = async (/** @type {() => Promise<any>} */ work) => {
    await work().catch(complain);
    head.load();
    list.load();
  };
  return page("Failed events", { about: make("a", { href: `/-/webhooks/${encodeURIComponent(bucket)}` }, icon("left"), `All webhooks of ${bucket}`) }, panel("Webhook", {}, head.element), panel("Events", { about: "The latest 1,000 events are kept for 30 days." }, list.element));
}
