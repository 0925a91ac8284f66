// Results of a search as entries of a list, and the marked parts of their keys.

import { search } from "./api.mjs";
import { make } from "./dom.mjs";

/** Results per page, and maximum results of a search. */
const PAGE = 100;
const HITS_MAX = 10_000;

export class Hits {
  /** @param {string} bucket @param {string} parent @param {string} text @param {(error: any) => void} changed */
  constructor(bucket, parent, text, changed) {
    this.bucket = bucket;
    this.prefix = parent;
    this.text = text;
    /** @type {any[]} */
    this.entries = [];
    this.total = 0;
    this.isExact = true;
    this.isWhole = false;
    this.took = 0;
    this.changed = changed;
    this.stopped = new AbortController();
    this.isLoading = false;
  }

  async load() {
    if (this.isLoading || this.isWhole) return;
    this.isLoading = true;
    try {
      const values = { q: this.text, parent: this.prefix, limit: PAGE, offset: this.entries.length };
      const answer = await search(this.bucket, values, this.stopped.signal);
      this.total = answer.total;
      this.isExact = answer.totalIsExact;
      this.took = answer.processingTimeMs;
      this.entries.push(...answer.hits.map((/** @type {any} */ hit) => ({
        name: hit.name, key: hit.key, isFolder: hit.type === "folder", size: hit.size ?? null, time: hit.lastModified ?? "", matches: hit.matches,
      })));
      this.isWhole = answer.hits.length === 0 || this.entries.length >= Math.min(this.total, HITS_MAX - PAGE);
      this.changed(null);
    } catch (error) {
      this.changed(error);
    } finally {
      this.isLoading = false;
    }
  }

  get length() {
    return this.entries.length;
  }

  /** @param {number} index */
  want(index) {
    if (index + PAGE / 2 >= this.entries.length) this.load();
  }

  /** @param {Set<string>} keys */
  remove(keys) {
    this.entries = this.entries.filter((entry) => !keys.has(entry.key));
    this.changed(null);
  }

  stop() {
    this.stopped.abort();
  }
}

/**
 * A part of a key, with the matches marked. @param {string} key @param {[number, number][]} matches
 * @param {number} from @param {number} to
 */
export function marked(key, matches, from, to) {
  const parts = [];
  let at = from;
  for (const [start, end] of matches) {
    if (end <= from || start >= to) continue;
    const first = Math.max(start, at);
    if (first > at) parts.push(key.slice(at, first));
    at = Math.max(at, Math.min(end, to));
    if (at > first) parts.push(make("mark", null, key.slice(first, at)));
  }
  if (at < to) parts.push(key.slice(at, to));
  return parts;
}
