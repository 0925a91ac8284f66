// Who is told what happens in a bucket: webhooks, how their deliveries go, and what was given up.

import { filesAddress } from "./address.mjs";
import { ask, field, open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { complain, note } from "./live.mjs";
import { createWebhook, deadLetters, deleteWebhook, editWebhook, forgetDeadLetters, retryDeadLetters, testWebhook, webhook, webhooks } from "./manage.mjs";
import { askFirst, badge, button, facts, nothing, page, paged, panel, part, snippet, tellOnce, tick, when } from "./parts.mjs";
import { count, number } from "./text.mjs";

/** Events by what they are, and in words. @type {[string, string][]} */
const EVENTS = [
  ["s3:ObjectCreated:*", "Anything was stored"], ["s3:ObjectRemoved:*", "Anything was deleted"],
  ["s3:ObjectCreated:Post", "A file came in a form"], ["s3:ObjectCreated:Put", "A file came to a presigned address"],
  ["s3:ObjectCreated:CompleteMultipartUpload", "A resumable upload is complete"], ["s3:ObjectCreated:Copy", "A file was moved, or brought back"],
];

/** @param {any} place */
export function view(place) {
  return place.key === "" ? all(place.bucket) : one(place.bucket, place.key);
}

/** @param {string} bucket */
function all(bucket) {
  const list = part(() => webhooks(bucket), (found) => (found.length === 0
    ? nothing("bell", "No webhook yet", "A webhook gets a message, signed and as JSON, for each file that is stored or deleted.", make("p", { class: "buttons" }, button("New webhook", () => edit(bucket, null, list), { class: "primary", image: "plus" })))
    : found.map((it) => card(bucket, it, list))));
  return page(`Webhooks of ${bucket}`, {
    about: ["Messages to a server of yours about what happens in ", make("a", { href: filesAddress(bucket) }, bucket), "."],
    actions: [button("New webhook", () => edit(bucket, null, list), { class: "primary", image: "plus" })],
  }, list.element);
}

/** @param {any} it */
function state(it) {
  if (!it.enabled) return badge(it.disabledReason ? "disabled by the server" : "off", "warn");
  if (it.retryingCount > 0) return badge("failing", "bad");
  return badge(it.lastDeliveryAt ? "delivering" : "waiting for the first event", it.lastDeliveryAt ? "good" : "");
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
      button("Send a test", () => test(bucket, it), { name: `test-${it.id}` }),
      button(it.enabled ? "Turn off" : "Turn on", turn, { name: `turn-${it.id}` }),
      button("Edit", () => edit(bucket, it, list), { name: `edit-${it.id}` }),
      button("Delete", () => askFirst("Delete this webhook", `Nothing is sent to ${it.url} any more, and ${count(it.pendingCount, "event")} that wait for it are forgotten.`, "Delete it", async () => {
        await deleteWebhook(bucket, it.id);
        list.load();
      }), { class: "danger", name: `delete-${it.id}` }),
    ],
  }, facts([
    ["When", make("span", { class: "badges" }, it.events.map((/** @type {string} */ name) => badge(name.replace(/^s3:/, ""))))],
    ["For", it.prefix ? make("code", null, it.prefix) : "all files"],
    ["Waiting", [number(it.pendingCount), it.retryingCount > 0 && make("small", null, ` of which ${number(it.retryingCount)} failed before`)]],
    ["Given up", it.deadLetterCount > 0 ? make("a", { href: `/-/webhooks/${encodeURIComponent(bucket)}/${it.id}` }, `${count(it.deadLetterCount, "event")}: look and send again`) : "none"],
    ["Dropped", it.droppedCount > 0 ? badge(count(it.droppedCount, "event"), "bad") : "none"],
    ["Last try", [when(it.lastAttemptAt), it.lastStatus && ` answered ${it.lastStatus}`, it.lastError && make("small", null, ` ${it.lastError}`)]],
    ["Last delivery", when(it.lastDeliveryAt)],
  ]));
}

/** @param {string} bucket @param {any} it @param {{load: () => any}} list */
function edit(bucket, it, list) {
  ask(it ? "Edit the webhook" : "New webhook", [
    field("Address", { name: "url", type: "url", required: true, maxlength: 2048, value: it?.url ?? "", spellcheck: "false", autocapitalize: "none" }, "Where messages are sent, by POST. In private networks only where the operator allows it."),
    make("fieldset", { class: "stacked" }, make("legend", null, "When"), EVENTS.map(([name, what]) => tick(what, { name, checked: it ? it.events.includes(name) : name === "s3:ObjectCreated:*" }, name.slice(3)))),
    field("Only of files that begin with", { name: "prefix", maxlength: 1024, value: it?.prefix ?? "", placeholder: "calls/", spellcheck: "false", autocapitalize: "none" }),
  ], it ? "Save" : "Create", async (values) => {
    const known = EVENTS.map(([name]) => name);
    const others = (it?.events ?? []).filter((/** @type {string} */ name) => !known.includes(name));
    const events = [...known.filter((name) => /** @type {any} */ (values)[name] !== undefined), ...others];
    if (events.length === 0) throw new Error("Choose one event at least.");
    const body = { url: values.url, events, prefix: values.prefix };
    const { secret } = await (it ? editWebhook(bucket, it.id, body) : createWebhook(bucket, body));
    list.load();
    return () => secret && tellOnce("The secret of the webhook", "It is shown only now. With it your server verifies that a message is from here.", snippet("Secret", secret),
      make("p", null, "Messages are those of Standard Webhooks, whose libraries verify them."));
  });
}

/** @param {string} bucket @param {any} it */
async function test(bucket, it) {
  const waiting = note(`A test is on its way to ${new URL(it.url).host}.`, null, { seconds: 15 });
  try {
    const { delivered, status, deliveryError, answer, durationMs } = await testWebhook(bucket, it.id);
    open(delivered ? "The test was delivered" : "The test was not delivered", [make("div", { class: "told" }, facts([
      ["Answer", status ?? "none"], ["Took", `${number(durationMs)} ms`], ...(deliveryError ? [/** @type {[string, string]} */ (["Why not", deliveryError])] : []),
    ]), answer ? make("pre", { class: "answer", tabindex: "0", role: "group", "aria-label": "What it answered" }, answer) : null)]);
  } catch (error) {
    complain(error, "No test was sent");
  }
  waiting.close();
}

/** What was given up of one webhook. @param {string} bucket @param {string} id */
function one(bucket, id) {
  const head = part(() => webhook(bucket, id), (it) => [
    facts([["Address", make("code", null, it.url)], ["State", state(it)], ["Waiting", number(it.pendingCount)]]),
    make("p", { class: "buttons" },
      button("Send all again", () => act(() => retryDeadLetters(bucket, id).then(({ retriedCount }) => note(`${count(retriedCount, "event")} ${retriedCount === 1 ? "is" : "are"} on the way again.`))), { class: "primary", image: "again", disabled: it.deadLetterCount === 0 }),
      button("Forget all", () => askFirst("Forget what was given up", "These events are never sent.", "Forget them", async () => {
        await forgetDeadLetters(bucket, id);
        await act(async () => {});
      }), { class: "danger", disabled: it.deadLetterCount === 0 })),
  ]);
  const list = paged("Events that were given up", [["What"], ["File", "wide"], ["Happened"], ["Tries", "number"], ["Why", "wide"], ["Do", "act"]], async (cursor) => {
    const answer = await deadLetters(bucket, id, cursor);
    return { cursor: answer.nextCursor, rows: answer.deadLetters.map((/** @type {any} */ it) => [
      it.type, make("code", null, it.key), when(it.timestamp), number(it.attemptCount),
      [it.status ? `${it.status} ` : "", it.deliveryError, it.answer && make("details", null, make("summary", null, "What it answered"), make("pre", { class: "answer", tabindex: "0" }, it.answer))],
      make("span", { class: "buttons" },
        button("Again", () => act(() => retryDeadLetters(bucket, id, it.eventId)), { name: `again-${it.eventId}`, "aria-label": `Send again: ${it.key}` }),
        button("Forget", () => act(() => forgetDeadLetters(bucket, id, it.eventId)), { name: `forget-${it.eventId}`, "aria-label": `Forget: ${it.key}` })),
    ]) };
  }, () => nothing("check", "Nothing was given up", "Events that cannot be delivered for some three days come here."));
  const act = async (/** @type {() => Promise<any>} */ work) => {
    await work().catch(complain);
    head.load();
    list.load();
  };
  return page("Events that were given up", { about: make("a", { href: `/-/webhooks/${encodeURIComponent(bucket)}` }, icon("left"), `All webhooks of ${bucket}`) }, panel("The webhook", {}, head.element), panel("Events", { about: "The last 1,000 are kept, for 30 days." }, list.element));
}
