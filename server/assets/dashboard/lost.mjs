// Uploads whose response was lost, by a broken connection or an aborted request: checks whether the server stored them.

import { fileAddress } from "./address.mjs";
import { headOf, load } from "./api.mjs";

/** Time after which the server has finished an aborted request. */
const SETTLED_MS = 500;
/** Names that are checked. */
const NAMES_MAX = 256;

/** The name that the server gives a file if `number` names before it are taken. @param {string} name @param {number} number */
export function numbered(name, number) {
  if (number === 0) return name;
  const [, stem, ending = ""] = /** @type {RegExpExecArray} */ (/^([^]+?)(\.[A-Za-z0-9]{1,16})?$/.exec(name));
  return `${stem} (${number})${ending}`;
}

/**
 * The key under which the same bytes are stored, by the name of the file or a numbered one; null if they are not stored.
 * A name that the server changed in another way is not found: that file is sent again.
 * @param {import("./queue.mjs").Item} item @param {AbortSignal} signal
 */
export async function storedAs(item, signal) {
  const wait = item.brokeAt + SETTLED_MS - Date.now();
  if (wait > 0) await new Promise((done) => setTimeout(done, wait));
  const name = item.file.name.normalize("NFC");
  for (let number = 0; number < NAMES_MAX; number += 1) {
    const key = item.folder + numbered(name, number);
    const size = await sizeOf(item.bucket, key, signal);
    if (size === null) return null;
    if (size === item.file.size && await isSame(item, key, signal)) return key;
  }
  return null;
}

/** @param {string} bucket @param {string} key @param {AbortSignal} signal */
async function sizeOf(bucket, key, signal) {
  try {
    const head = await headOf(bucket, key, { signal, cache: "no-store" });
    return Number(head.headers.get("Content-Length"));
  } catch (/** @type {any} */ error) {
    // No file can have an invalid name.
    if (error.status === 404 || error.status === 400) return null;
    throw error;
  }
}

/** @param {import("./queue.mjs").Item} item @param {string} key @param {AbortSignal} signal */
async function isSame(item, key, signal) {
  const [theirs, ours] = await Promise.all([
    load("GET", fileAddress(item.bucket, key), { signal, cache: "no-store" }).then((answer) => answer.arrayBuffer()),
    item.file.arrayBuffer(),
  ]);
  const [one, other] = [new Uint8Array(theirs), new Uint8Array(ours)];
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
