// The order of a list: folders first, then files, by name, type, size or date, in either direction.
//
// Names compare in natural, caseless order with ties by code points, and break the ties of the other columns, so that
// one direction is the exact reverse of the other. Long lists are sorted in slices, between which the page draws.

import { typeLabel } from "./kinds.mjs";

/** @typedef {import("./listing.mjs").Entry} Entry */

const COLLATOR = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
/** Entries that are sorted at once: a slice takes a few milliseconds. */
const SLICE = 2_000;
/** Milliseconds of work between two pauses. */
const SLICE_MS = 8;
/** Columns that a list is sorted by. */
export const COLUMNS = ["name", "type", "size", "time"];

/** Compares by code points, where strings compare by UTF-16 units. @param {string} one @param {string} other */
export function byCodePoints(one, other) {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const unit = one.charCodeAt(at);
    const against = other.charCodeAt(at);
    if (unit === against) continue;
    const isSurrogate = (unit & 0xf800) === 0xd800;
    if (isSurrogate !== ((against & 0xf800) === 0xd800)) return isSurrogate ? 1 : -1;
    return unit - against;
  }
  return one.length - other.length;
}

/** @param {Entry} one @param {Entry} other */
const byName = (one, other) => COLLATOR.compare(one.name, other.name) || byCodePoints(one.name, other.name);

/** Compares two folders or two files by a column, ascending. @param {string} column @returns {(one: Entry, other: Entry) => number} */
function comparison(column) {
  switch (column) {
    case "size": return (one, other) => (one.size ?? -1) - (other.size ?? -1) || byName(one, other);
    case "time": return (one, other) => (one.time < other.time ? -1 : one.time > other.time ? 1 : byName(one, other));
    case "type": return (one, other) => {
      if (one.isFolder) return byName(one, other);
      return COLLATOR.compare(typeLabel(one.name), typeLabel(other.name)) || byName(one, other);
    };
    default: return byName;
  }
}

/** The column and the direction of an order such as `-size`; no order is by name. @param {string} order */
export const columnOf = (order) => ({ column: order.replace("-", "") || "name", isDescending: order.startsWith("-") });

/** Entries in an order, sorted at once. @param {Entry[]} entries @param {string} order */
export function sorted(entries, order) {
  const { column, isDescending } = columnOf(order);
  const compare = comparison(column);
  const part = (/** @type {boolean} */ isFolder) => {
    const found = entries.filter((entry) => entry.isFolder === isFolder).sort(compare);
    return isDescending ? found.reverse() : found;
  };
  return [...part(true), ...part(false)];
}

/** Entries in an order, sorted in slices. @param {Entry[]} entries @param {string} order @param {AbortSignal} signal */
export async function sortedInSlices(entries, order, signal) {
  const { column, isDescending } = columnOf(order);
  const compare = comparison(column);
  let since = performance.now();
  const pause = async () => {
    if (performance.now() - since < SLICE_MS) return;
    await new Promise((done) => setTimeout(done));
    signal.throwIfAborted();
    since = performance.now();
  };
  const part = async (/** @type {boolean} */ isFolder) => {
    const found = entries.filter((entry) => entry.isFolder === isFolder);
    /** @type {Entry[][]} */
    let runs = [];
    for (let at = 0; at < found.length; at += SLICE) {
      runs.push(found.slice(at, at + SLICE).sort(compare));
      await pause();
    }
    while (runs.length > 1) {
      const next = [];
      for (let at = 0; at < runs.length; at += 2) next.push(at + 1 < runs.length ? await merged(runs[at], runs[at + 1], compare, pause) : runs[at]);
      runs = next;
    }
    const all = runs[0] ?? [];
    return isDescending ? all.reverse() : all;
  };
  return [...await part(true), ...await part(false)];
}

/**
 * Two sorted lists as one. @param {Entry[]} one @param {Entry[]} other
 * @param {(one: Entry, other: Entry) => number} compare @param {() => Promise<void>} pause
 */
async function merged(one, other, compare, pause) {
  // The pages of a folder come sorted by bytes, so that most runs follow one another.
  if (compare(one[one.length - 1], other[0]) <= 0) return one.concat(other);
  const all = [];
  let [left, right] = [0, 0];
  while (left < one.length && right < other.length) {
    all.push(compare(one[left], other[right]) <= 0 ? one[left++] : other[right++]);
    if (all.length % SLICE === 0) await pause();
  }
  while (left < one.length) all.push(one[left++]);
  while (right < other.length) all.push(other[right++]);
  return all;
}

/** Entries whose names contain every word. @param {Entry[]} entries @param {string} text */
export function filtered(entries, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return entries;
  return entries.filter((entry) => {
    const name = entry.name.toLowerCase();
    return words.every((word) => name.includes(word));
  });
}
