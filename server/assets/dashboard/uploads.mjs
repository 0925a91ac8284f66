// The panel of uploads: sends the queue, shows progress, and stays while views change.

import { exists, explain, isGone, signedOut } from "./api.mjs";
import { dropped, pasted, unreadable } from "./collect.mjs";
import { fill, preferences, make } from "./dom.mjs";
import { icon, pageIcon } from "./icons.mjs";
import { note, say } from "./live.mjs";
import { storedAs } from "./lost.mjs";
import { LARGE_BYTES, Queue } from "./queue.mjs";
import { bytes, count, duration, number } from "./text.mjs";
import { forgetUnfinished, giveUp, sendForm, sendPieces, unfinished } from "./transfer.mjs";
import { Viewport } from "./viewport.mjs";

/** @typedef {import("./queue.mjs").Item} Item */

/** Concurrent requests. */
const PARALLEL = 5;
const TITLE = "trug";
const UNREADABLE = "Can't read this file. It was changed, moved or deleted, or you don't have permission. Choose it again.";

const queue = new Queue();
let running = 0;
/** Drops whose folders are being read. */
let reading = 0;
let readingStop = new AbortController();
let isOpen = true;
let isOver = true;
/** @type {any} */
let ticking = 0;

/** Emits `stored` with the folders that have new files. */
export const changes = new EventTarget();
/** @type {Set<string>} */
let stored = new Set();

const title = make("h2", null, "Uploads");
const line = make("p", { class: "faint" });
const bar = make("progress", { max: 1, value: 0, "aria-label": "All uploads" });
const pause = make("button", { type: "button", class: "bare", click: () => setPaused(!queue.isPaused) });
const retry = make("button", { type: "button", class: "link", hidden: true, click: () => { queue.retryFailed(); work(); } }, "Retry failed");
const fold = make("button", { type: "button", class: "bare", click: () => { isOpen = !isOpen; draw(); } });
const shut = make("button", { type: "button", class: "bare", "aria-label": "Cancel all or close", click: () => cancelAll() }, icon("close"));
const policy = make("select", { change: () => { preferences.set("policy", policy.value); } },
  [["rename", "Keep both"], ["overwrite", "Replace"], ["skip", "Skip"]].map(([value, text]) =>
    make("option", { value, selected: preferences.get("policy", "rename") === value }, text)));
const reason = make("p", { class: "reason", hidden: true });
const cutOff = make("p", { class: "cut-off", hidden: true });
const list = new Viewport("Files to upload", {
  role: "list",
  height: 44,
  make: () => make("div", { class: "item", role: "listitem" },
    make("span", { class: "name" }), make("span", { class: "how" }), make("span", { class: "fill" }),
    make("button", { type: "button", class: "bare" }, icon("close"))),
  draw: drawItem,
});
const body = make("div", { class: "body" },
  make("label", { class: "policy" }, "If a file exists ", policy), cutOff, list.element, reason, retry);
export const panel = make("section", { class: "uploads", "aria-label": "Uploads", hidden: true },
  make("header", null, make("div", null, title, line), pause, fold, shut), bar, body);

list.element.addEventListener("click", (/** @type {Event} */ event) => {
  const item = queue.items[list.indexOf(event)];
  if (!item || !/** @type {Element} */ (event.target).closest("button")) return;
  if (item.state === "failed") {
    item.tries = 0;
    queue.again(item);
    work();
  } else if (item.state === "waiting" || item.state === "sending") {
    queue.drop((it) => it === item);
    giveUp(item);
  }
  draw();
});

/** Adds files to the queue. @param {import("./collect.mjs").Found[]} found @param {string} bucket @param {string} folder */
export function upload(found, bucket, folder) {
  if (found.length === 0) return;
  if (isOver) {
    queue.drop((item) => item.state === "done" || item.state === "skipped");
    queue.samples = [];
    say(`Uploading to ${bucket}/${folder}`);
  }
  isOver = false;
  isOpen ||= panel.hidden;
  queue.add(found, bucket, folder);
  panel.hidden = false;
  work();
}

/**
 * Uploads dropped files and folders while the folders are being read. Call it in the event handler.
 * @param {DataTransfer} transfer @param {string} bucket @param {string} folder
 */
export async function uploadDropped(transfer, bucket, folder) {
  reading += 1;
  try {
    const unread = await dropped(transfer, readingStop.signal, (found) => upload(found, bucket, folder));
    if (unread.length === 0) return;
    const names = unread.slice(0, 3).join(", ") + (unread.length > 3 ? ", …" : "");
    note(`Skipped ${count(unread.length, "item")} that couldn't be read: ${names}. ` +
      "Check that the files exist and that you may read them, then drop them again.", null, { seconds: 60, kind: "bad" });
  } finally {
    reading -= 1;
    work();
  }
}

/** Uploads pasted files into the current folder. @param {ClipboardEvent} event @param {string} bucket @param {string} folder */
export function paste(event, bucket, folder) {
  const found = pasted(event.clipboardData);
  if (found.length === 0) return;
  event.preventDefault();
  upload(found, bucket, folder);
}

/** Offers to resume uploads that were interrupted by closing the page. */
export function tellUnfinished() {
  const all = Object.values(unfinished());
  if (all.length === 0 || isBusy()) return;
  panel.hidden = false;
  fill(cutOff, `${count(all.length, "upload was", "uploads were")} interrupted: ${all.slice(0, 3).map((it) => it.name).join(", ")}. `,
    "Choose the same files for the same folder to resume. ",
    make("button", { type: "button", class: "link", click: async () => { cutOff.hidden = true; await forgetUnfinished(); draw(); } }, "Discard"));
  cutOff.hidden = false;
  draw();
}

/** @param {boolean} isPaused */
function setPaused(isPaused) {
  queue.isPaused = isPaused;
  if (isPaused) for (const item of queue.items) if (item.state === "sending") item.stop?.abort();
  work();
}

async function cancelAll() {
  const open = queue.items.filter((item) => item.state === "waiting" || item.state === "sending");
  readingStop.abort();
  readingStop = new AbortController();
  queue.drop(() => true);
  panel.hidden = true;
  cutOff.hidden = true;
  finish();
  for (const item of open) await giveUp(item);
  if (open.length > 0) note(`${count(open.length, "upload")} cancelled. Files already uploaded are kept.`);
}

/** Whether files are queued, or folders are still being read. */
const isBusy = () => queue.isBusy || reading > 0;

/** Starts requests up to the limit. */
function work() {
  while (running < PARALLEL) {
    const batch = queue.take(Date.now());
    if (batch.length === 0) break;
    running += 1;
    one(batch).finally(() => {
      running -= 1;
      work();
    });
  }
  ticking ||= setInterval(tick, 250);
  draw();
}

function tick() {
  if (isBusy()) return work();
  clearInterval(ticking);
  ticking = 0;
  finish();
  draw();
}

/** @param {Item[]} batch */
async function one(batch) {
  const stop = new AbortController();
  for (const item of batch) item.stop = stop;
  let left = batch;
  try {
    if (policy.value !== "overwrite") left = await missing(batch, stop.signal);
    if (policy.value === "skip") left = await free(left, stop.signal);
    if (left.length === 0) return;
    const overwrite = policy.value === "overwrite";
    if (left[0].file.size >= LARGE_BYTES) await sendPieces(left[0], overwrite, stop.signal, (sent) => queue.progress(left[0], sent));
    else await sendForm(left, overwrite, stop.signal, (part) => left.forEach((item) => queue.progress(item, item.file.size * part)));
    left.forEach(isStored);
  } catch (/** @type {any} */ error) {
    const sending = left.filter((item) => item.state === "sending");
    if (sending.length === 0) return;
    // Paused, or cancelled together with the other files of its form.
    if (isGone(error)) {
      queue.broke(sending, Date.now());
      sending.forEach((item) => queue.again(item));
    }
    else if (error.status === 401) {
      sending.forEach((item) => queue.again(item));
      if (!queue.isPaused) note("Uploads are paused until you sign in again.", null, { seconds: 20 });
      setPaused(true);
      signedOut();
    } else await refused(sending, error);
  } finally {
    for (const item of batch) item.stop = null;
  }
}

/**
 * Handles a failed request. Without a response, files that can't be read fail, and the others are sent again.
 * @param {Item[]} batch @param {any} error
 */
async function refused(batch, error) {
  const now = Date.now();
  const lost = error.status === 0 ? await unreadable(batch) : [];
  const left = batch.filter((item) => item.state === "sending" && !lost.includes(item));
  for (const item of lost.filter((it) => it.state === "sending")) {
    item.problem = UNREADABLE;
    queue.turn(item, "failed");
  }
  if (lost.length > 0) {
    queue.broke(left, now);
    left.forEach((item) => queue.again(item));
  } else if (left.length > 0) queue.refused(left, { status: error.status ?? 400, retryAfter: error.retryAfter, message: explain(error) }, now);
}

/** @param {Item} item */
function isStored(item) {
  queue.turn(item, "done");
  stored.add(`${item.bucket}/${item.folder}`);
}

/** The items that the server does not have; after a lost response some may be stored. @param {Item[]} batch @param {AbortSignal} signal */
function missing(batch, signal) {
  return sifted(batch, (item) => item.brokeAt > 0 && item.file.size < LARGE_BYTES, async (item) => {
    const key = await storedAs(item, signal);
    item.brokeAt = 0;
    if (key === null || item.state !== "sending") return;
    item.key = key;
    isStored(item);
  });
}

/** The items whose names are free; the others are skipped. @param {Item[]} batch @param {AbortSignal} signal */
function free(batch, signal) {
  return sifted(batch, (item) => !item.isChecked, async (item) => {
    const isTaken = await exists(item.bucket, item.folder + item.file.name, signal);
    item.isChecked = true;
    if (isTaken && item.state === "sending") queue.turn(item, "skipped");
  });
}

/**
 * Checks some items, and returns those still to be sent. All checks have ended when it throws.
 * @param {Item[]} batch @param {(item: Item) => boolean} which @param {(item: Item) => Promise<void>} look
 */
async function sifted(batch, which, look) {
  const ends = await Promise.allSettled(batch.filter(which).map(look));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return batch.filter((item) => item.state === "sending");
}

function finish() {
  tell();
  if (isOver) return;
  isOver = true;
  const { done, failed, skipped } = queue.counts;
  const parts = [`${count(done, "file")} uploaded`, skipped > 0 && `${number(skipped)} skipped`, failed > 0 && `${number(failed)} failed`];
  say(parts.filter(Boolean).join(", "));
}

/** Announces the folders that have new files. */
function tell() {
  if (stored.size === 0) return;
  changes.dispatchEvent(new CustomEvent("stored", { detail: stored }));
  stored = new Set();
}

let announcedAt = 0;

function draw() {
  const now = Date.now();
  const { counts, items } = queue;
  if (now - announcedAt > 4000) {
    announcedAt = now;
    tell();
  }
  const isOn = isBusy();
  const part = queue.bytes > 0 ? queue.sent / queue.bytes : isOn ? 0 : 1;
  const finished = counts.done + counts.skipped;
  title.textContent = isOn ? `Uploading ${number(finished)} of ${number(items.length)}`
    : items.length === 0 ? "Uploads" : counts.failed > 0 ? `${count(counts.failed, "file")} failed`
      : counts.done > 0 ? `${count(counts.done, "file")} uploaded` : `${count(counts.skipped, "file")} skipped`;
  line.textContent = status(now, isOn);
  bar.value = part;
  bar.hidden = items.length === 0;
  fill(pause, icon(queue.isPaused ? "play" : "pause"));
  pause.setAttribute("aria-label", queue.isPaused ? "Resume" : "Pause");
  pause.hidden = !isOn;
  fill(fold, icon(isOpen ? "down" : "up"));
  fold.setAttribute("aria-label", isOpen ? "Collapse" : "Expand");
  fold.setAttribute("aria-expanded", String(isOpen));
  body.hidden = !isOpen;
  retry.hidden = reason.hidden = counts.failed === 0;
  // The row has no room for the full text.
  if (counts.failed > 0) reason.textContent = items.find((item) => item.state === "failed")?.problem ?? "";
  list.element.hidden = items.length === 0;
  if (list.count === items.length) list.refresh();
  else list.setCount(items.length);
  // Running uploads are in view unless the list was scrolled.
  if (isOn && !panel.matches(":hover, :focus-within")) list.scroller.scrollTop = Math.max(0, finished + counts.failed - 1) * 44;
  list.element.style.height = `${Math.min(items.length, 5) * 44}px`;
  document.title = isOn ? `${Math.floor(part * 100)} % · ${TITLE}` : document.title.replace(/^\d+ % · /, "");
  const link = /** @type {HTMLLinkElement} */ (document.getElementById("icon"));
  const href = pageIcon(isOn ? Math.round(part * 50) / 50 : null);
  if (link.getAttribute("href") !== href) link.href = href;
}

/** @param {number} now @param {boolean} isOn */
function status(now, isOn) {
  if (!isOn) return queue.items.length > 0 ? bytes(queue.bytes) : "";
  const sizes = `${bytes(queue.sent)} of ${bytes(queue.bytes)}`;
  if (queue.isPaused) return `Paused · ${sizes}`;
  if (now < queue.notBefore) return `${sizes} · ${navigator.onLine ? "" : "offline – "}retrying in ${duration((queue.notBefore - now) / 1000)}`;
  const speed = queue.speed(now);
  return speed > 0 ? `${sizes} · ${bytes(speed)}/s · ${duration((queue.bytes - queue.sent) / speed)} left` : sizes;
}

/** @param {any} element @param {number} index */
function drawItem(element, index) {
  const item = queue.items[index];
  if (!item) return;
  const [name, how, filled, button] = element.children;
  const words = { waiting: "Waiting", sending: `${Math.floor((100 * item.sent) / Math.max(1, item.file.size))} %`, done: "Done", skipped: "Skipped", failed: "Failed" };
  name.textContent = item.folder + item.file.name;
  name.title = name.textContent;
  how.textContent = words[item.state];
  how.title = item.problem;
  element.dataset.state = item.state;
  filled.style.transform = `scaleX(${item.state === "sending" ? item.sent / Math.max(1, item.file.size) : 0})`;
  button.hidden = item.state === "done" || item.state === "skipped";
  button.setAttribute("aria-label", `${item.state === "failed" ? "Try again" : "Cancel"}: ${item.file.name}`);
  if (button.dataset.icon !== item.state) {
    button.dataset.icon = item.state;
    fill(button, icon(item.state === "failed" ? "again" : "close"));
  }
}

addEventListener("beforeunload", (event) => {
  if (isBusy()) event.preventDefault();
});
draw();
