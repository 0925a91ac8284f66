// The entries of a folder, as they come: page by page behind the first, with the length known before where the server
// counts it. Entries are plain data; nothing here is drawn.

import { countedFolder, isGone, listFolder } from "./api.mjs";

/** @typedef {{name: string, key: string, isFolder: boolean, size: number, time: string}} Entry */

/** Pages that come by themselves; what lies beyond them comes when it is looked at. */
const PAGES_AHEAD = 200;
/** A server that is busy is asked so often before that is told. */
const TRIES_QUIET = 3;

export class Listing {
  /**
   * @param {string} bucket @param {string} prefix
   * @param {(error: any, isAskedAgain?: boolean) => void} changed called after each page, and with an error when it ends by one or goes on in spite of it
   */
  constructor(bucket, prefix, changed) {
    this.bucket = bucket;
    this.prefix = prefix;
    /** @type {Entry[]} */
    this.entries = [];
    this.isWhole = false;
    /** How many there will be, as far as is known. */
    this.expected = 0;
    this.changed = changed;
    this.wanted = 0;
    this.hasFolders = false;
    this.stopped = new AbortController();
  }

  /** Begins; `counted` is how many files the whole bucket holds. @param {number | null} counted */
  async load(counted) {
    const depth = this.prefix.split("/").length - 1;
    if (depth === 0) this.counted(counted);
    else if (depth === 1) {
      // It tells the length only: without it the list grows as it comes.
      countedFolder(this.bucket, this.prefix, this.stopped.signal).then((found) => this.counted(found?.objectCount), () => {});
    }
    let cursor = null;
    try {
      for (let page = 1; ; page += 1) {
        const answer = await this.page(cursor);
        this.add(answer);
        cursor = answer.NextContinuationToken ?? null;
        this.isWhole = cursor === null;
        this.changed(null);
        if (this.isWhole) return;
        while (page >= PAGES_AHEAD && this.wanted < this.entries.length) await this.more();
      }
    } catch (error) {
      if (!isGone(error)) this.changed(error);
    }
  }

  /** A page; a server that asks for patience gets it, and one that is away is asked until it is back. @param {string | null} cursor @returns {Promise<any>} */
  async page(cursor) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await listFolder(this.bucket, this.prefix, cursor, this.stopped.signal);
      } catch (/** @type {any} */ error) {
        const isBusy = [429, 503].includes(error.status) && !(error.retryAfter > 60);
        if (error.status !== 0 && !isBusy) throw error;
        if (tries === (isBusy ? TRIES_QUIET : 1)) this.changed(error, true);
        await new Promise((done) => setTimeout(done, 1000 * (error.retryAfter || 1)));
        this.stopped.signal.throwIfAborted();
      }
    }
  }

  /** Waits until somebody looks beyond what is there. */
  more() {
    return new Promise((done) => { this.proceed = done; });
  }

  /** Says that this entry is looked at. @param {number} index */
  want(index) {
    this.wanted = Math.max(this.wanted, index + 2000);
    if (this.wanted >= this.entries.length) this.proceed?.(undefined);
  }

  /** @param {number | null | undefined} counted */
  counted(counted) {
    this.total = counted ?? undefined;
    this.changed(null);
  }

  /** How many rows the list has: those that are there, and those that are sure to come. */
  get length() {
    const isFlat = !this.hasFolders && this.entries.length > 0;
    if (this.isWhole || !isFlat || this.total === undefined) return this.entries.length;
    return Math.max(this.entries.length, this.total);
  }

  /** @param {any} answer */
  add(answer) {
    for (const { Prefix: key } of answer.CommonPrefixes) {
      this.hasFolders = true;
      this.entries.push({ name: key.slice(this.prefix.length, -1), key, isFolder: true, size: 0, time: "" });
    }
    for (const { Key: key, Size: size, LastModified: time } of answer.Contents) {
      this.entries.push({ name: key.slice(this.prefix.length), key, isFolder: false, size, time });
    }
  }

  /** Takes entries out that are gone. @param {Set<string>} keys */
  remove(keys) {
    const before = this.entries.length;
    this.entries = this.entries.filter((entry) => !keys.has(entry.key));
    if (this.total !== undefined) this.total -= before - this.entries.length;
    this.changed(null);
  }

  stop() {
    this.stopped.abort();
    this.proceed?.(undefined);
  }
}

/** @type {Record<string, (one: Entry, other: Entry) => number>} */
const ORDERS = {
  name: (one, other) => COLLATOR.compare(one.name, other.name),
  size: (one, other) => one.size - other.size,
  time: (one, other) => (one.time < other.time ? -1 : one.time > other.time ? 1 : 0),
};
const COLLATOR = new Intl.Collator("en", { numeric: true });

/**
 * Entries that match, in an order: folders first. Without an order, as the server has them.
 * @param {Entry[]} entries @param {string} filter @param {string} order `size`, or `-size` for the largest first
 */
export function arranged(entries, filter, order) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? entries : entries.filter((entry) => {
    const name = entry.name.toLowerCase();
    return words.every((word) => name.includes(word));
  });
  const compare = ORDERS[order.replace("-", "")];
  if (!compare) return found;
  const sign = order.startsWith("-") ? -1 : 1;
  return [...found].sort((one, other) => Number(other.isFolder) - Number(one.isFolder) || sign * compare(one, other));
}
