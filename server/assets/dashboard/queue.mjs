// The upload queue as plain data: next items to send, failures, and progress. Sending is in `transfer.mjs`.

/** @typedef {"waiting" | "sending" | "done" | "skipped" | "failed"} State */
/**
 * @typedef {object} Item
 * @property {File} file
 * @property {string} bucket
 * @property {string} folder destination folder
 * @property {State} state
 * @property {number} sent bytes
 * @property {number} tries
 * @property {boolean} isAlone whether it is sent without others
 * @property {boolean} isChecked whether the name was found to be free
 * @property {number} brokeAt time when a request with it ended without a response, so that it may be stored already; else 0
 * @property {string} problem
 * @property {AbortController | null} stop
 * @property {string} key key under which it is stored
 */

/** Files of at least this size are sent in chunks, which can be resumed. */
export const LARGE_BYTES = 16_000_000;
/** Limits of a request that several small files share. */
const TOGETHER_COUNT = 32;
const TOGETHER_BYTES = 4_000_000;
/** Attempts before a file has failed. */
const TRIES_MAX = 8;
/** Statuses of requests whose response was lost. */
const LOST = [0, 502, 504];
/** Time window of the speed. */
const WINDOW_MS = 5_000;

export class Queue {
  constructor() {
    /** @type {Item[]} */
    this.items = [];
    /** Items to send, in their order; the front moves instead of the items. @type {Item[]} */
    this.line = [];
    this.front = 0;
    this.isPaused = false;
    /** Time before which nothing is sent, by `Retry-After` or backoff. */
    this.notBefore = 0;
    this.counts = { waiting: 0, sending: 0, done: 0, skipped: 0, failed: 0 };
    this.bytes = 0;
    this.sent = 0;
    /** @type {[number, number][]} */
    this.samples = [];
  }

  /** @param {import("./collect.mjs").Found[]} found @param {string} bucket @param {string} folder */
  add(found, bucket, folder) {
    for (const { file, folder: below } of found) {
      /** @type {Item} */
      const item = {
        file, bucket, folder: folder + below, state: "waiting", sent: 0, tries: 0, isAlone: file.size >= LARGE_BYTES,
        isChecked: false, brokeAt: 0, problem: "", stop: null, key: "",
      };
      this.items.push(item);
      this.line.push(item);
      this.counts.waiting += 1;
      this.bytes += file.size;
    }
  }

  /** @param {Item} item @param {State} state */
  turn(item, state) {
    this.counts[item.state] -= 1;
    this.counts[state] += 1;
    item.state = state;
    const sent = state === "done" || state === "skipped" ? item.file.size : state === "waiting" && !item.isAlone ? 0 : item.sent;
    this.progress(item, sent);
  }

  /** @param {Item} item @param {number} part bytes sent; rounded, since sums of fractions could become negative */
  progress(item, part) {
    const sent = Math.round(part);
    this.sent += sent - item.sent;
    item.sent = sent;
  }

  /** Takes the next items to send: a file, or several small ones for the same folder. @param {number} now @returns {Item[]} */
  take(now) {
    if (this.isPaused || now < this.notBefore) return [];
    const batch = [];
    let bytes = 0;
    while (this.front < this.line.length) {
      const item = this.line[this.front];
      const first = batch[0];
      if (item.state !== "waiting") {
        this.front += 1;
        continue;
      }
      const goesAlong = !first || (!item.isAlone && item.bucket === first.bucket && item.folder === first.folder &&
        batch.length < TOGETHER_COUNT && bytes + item.file.size <= TOGETHER_BYTES);
      if (!goesAlong) break;
      this.front += 1;
      this.turn(item, "sending");
      batch.push(item);
      bytes += item.file.size;
      if (item.isAlone) break;
    }
    if (this.front > 10_000) {
      this.line = this.line.slice(this.front);
      this.front = 0;
    }
    return batch;
  }

  /**
   * Handles items of a failed request: retries transient failures, and sends the files of a refused form one by one.
   * @param {Item[]} batch @param {{status: number, retryAfter?: number, advice?: string, message: string}} refusal @param {number} now
   */
  refused(batch, refusal, now) {
    const mayPass = refusal.status === 0 || refusal.status === 429 || (refusal.status >= 500 && refusal.status !== 507);
    const backoff = Math.min(60, 2 ** (batch[0].tries)) * (0.75 + Math.random() / 2);
    const wait = 1000 * (refusal.retryAfter || backoff);
    // The backoff applies to all requests.
    if (mayPass) this.notBefore = Math.max(this.notBefore, now + wait);
    if (LOST.includes(refusal.status)) this.broke(batch, now);
    for (const item of batch) {
      item.tries += refusal.status === 429 ? 0 : 1;
      if (mayPass && item.tries < TRIES_MAX) this.again(item);
      else if (!mayPass && batch.length > 1) {
        item.isAlone = true;
        this.again(item);
      } else {
        item.problem = refusal.advice ?? refusal.message;
        this.turn(item, "failed");
      }
    }
  }

  /** Marks items that may be stored: the response was lost. @param {Item[]} batch @param {number} now */
  broke(batch, now) {
    for (const item of batch) {
      item.brokeAt = now;
      item.isChecked = false;
    }
  }

  /** @param {Item} item */
  again(item) {
    this.turn(item, "waiting");
    this.line.push(item);
  }

  retryFailed() {
    for (const item of this.items) {
      if (item.state !== "failed") continue;
      item.tries = 0;
      item.problem = "";
      this.again(item);
    }
    this.notBefore = 0;
  }

  /** Removes items, and aborts their requests. @param {(item: Item) => boolean} which */
  drop(which) {
    this.items = this.items.filter((item) => {
      if (!which(item)) return true;
      this.counts[item.state] -= 1;
      this.bytes -= item.file.size;
      this.sent -= item.sent;
      item.state = "skipped";
      item.stop?.abort();
      return false;
    });
    this.line = this.line.filter((item) => item.state === "waiting");
    this.front = 0;
  }

  get isBusy() {
    return this.counts.waiting + this.counts.sending > 0;
  }

  /** Bytes per second over the time window. @param {number} now */
  speed(now) {
    this.samples.push([now, this.sent]);
    while (this.samples.length > 2 && now - this.samples[0][0] > WINDOW_MS) this.samples.shift();
    const [then, before] = this.samples[0];
    return now > then ? Math.max(0, (1000 * (this.sent - before)) / (now - then)) : 0;
  }
}
