// Moves and copies entries into a folder: conflicts are asked about once, and the whole can be undone.

import { awaited, each, moveOne, named, remove, UNDO_SECONDS } from "./actions.mjs";
import { nameOf } from "./address.mjs";
import { copyFile, listKeys, removeFile } from "./api.mjs";
import { ask, choice } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { complain, note } from "./live.mjs";
import { count, number } from "./text.mjs";

/** @typedef {import("./actions.mjs").Target} Target @typedef {import("./actions.mjs").Policy} Policy */

/** Copies of more files show their progress. */
const NOTE_COUNT = 20;

/** Copies a file, or a folder file by file; as `moveOne`. @param {string} bucket @param {Target} target @param {string} to @param {Policy} onConflict */
async function copyOne(bucket, target, to, onConflict) {
  if (!target.isFolder) return { key: (await copyFile(bucket, { from: target.key, to, onConflict })).path, isPart: false };
  const keys = [];
  let cursor = null;
  do {
    const page = await listKeys(bucket, target.key, cursor);
    keys.push(...page.Contents.map((/** @type {any} */ it) => it.Key));
    cursor = page.NextContinuationToken;
  } while (cursor);
  let [done, taken, isCancelled] = [0, 0, false];
  const shown = keys.length > NOTE_COUNT ? note("", { label: "Cancel", run: () => { isCancelled = true; } }, { seconds: 3600 }) : null;
  const { failure } = await each(keys, async (from) => {
    if (isCancelled) throw new Error(`Copying ${nameOf(target.key)} cancelled`);
    try {
      await copyFile(bucket, { from, to: to + from.slice(target.key.length), onConflict });
    } catch (/** @type {any} */ error) {
      if (error.code === "already_exists") taken += 1;
      // A thumbnail is made with its image.
      else if (!(error.code === "bad_request" && from.endsWith("_thumb.webp"))) throw error;
    }
    done += 1;
    shown?.text(`Copying ${nameOf(target.key)}: ${number(done)} of ${number(keys.length)}`);
  });
  shown?.close();
  if (failure) throw failure;
  return { key: to, isPart: taken > 0 };
}

/** Asks what happens to names that are taken; null cancels. @param {number} taken @param {string} folder @returns {Promise<Policy | "skip" | null>} */
function askConflict(taken, folder) {
  return new Promise((done) => {
    const dialog = ask(taken === 1 ? "Name already in use" : `${count(taken, "name")} already in use`, [
      make("p", null, `${taken === 1 ? "An item" : "Items"} with the same name exist${taken === 1 ? "s" : ""} in ${folder || "the bucket root"}.`),
      choice("On conflict", { name: "policy" }, [["rename", "Keep both"], ["overwrite", "Replace"], ["skip", "Skip"]]),
    ], "Continue", async ({ policy }) => () => done(/** @type {any} */ (policy)));
    dialog.addEventListener("close", () => setTimeout(() => done(null)));
  });
}

/**
 * Moves or copies entries into a folder. Asks once about all names that are taken, and offers to undo.
 * @param {string} bucket @param {Target[]} targets @param {string} folder @param {boolean} isCopy @param {() => void} changed
 */
export async function relocate(bucket, targets, folder, isCopy, changed) {
  const place = (/** @type {Target} */ target) => `${folder}${nameOf(target.key)}${target.isFolder ? "/" : ""}`;
  const work = isCopy ? copyOne : moveOne;
  /** @type {{target: Target, key: string}[]} */
  const moved = [];
  /** @type {Target[]} */
  let taken = [];
  let isMerged = false;
  const put = async (/** @type {Target} */ target, /** @type {Policy} */ policy) => {
    try {
      // A merge into an existing folder can't be undone.
      if (target.isFolder && (await listKeys(bucket, place(target), null, 1)).Contents.length > 0) isMerged = true;
      const { key, isPart } = await work(bucket, target, place(target), policy);
      if (isPart && policy === "refuse") taken.push(target);
      else moved.push({ target, key });
    } catch (/** @type {any} */ error) {
      if (error.code !== "already_exists") throw error;
      taken.push(target);
    }
  };
  let { failure } = await each(targets, (target) => put(target, "refuse"));
  const policy = taken.length > 0 ? await askConflict(taken.length, folder) : null;
  if (policy !== null && policy !== "skip") {
    const again = taken;
    taken = [];
    failure = (await each(again, (target) => put(target, policy))).failure ?? failure;
  }
  changed();
  const done = moved.map((it) => it.target);
  const isUndone = moved.length > 0 && !isMerged && policy !== "overwrite";
  const undo = async () => {
    const result = await each(moved, ({ target, key }) => {
      if (!isCopy) return moveOne(bucket, { key, isFolder: target.isFolder }, target.key);
      return target.isFolder ? awaited({ kind: "deleteFolder", bucketName: bucket, prefix: key }, `Deleting ${nameOf(key)}`) : removeFile(bucket, key);
    });
    if (result.failure) complain(result.failure);
    changed();
  };
  if (done.length > 0) note(`${named(done)} ${isCopy ? "copied" : "moved"} to ${folder || "the bucket root"}.`, isUndone ? { label: "Undo", run: undo } : null, { seconds: UNDO_SECONDS });
  if (failure) complain(failure, `${count(targets.length - done.length, "item")} not ${isCopy ? "copied" : "moved"}`);
}

/** Copies entries within their folder, under the next free names. @param {string} bucket @param {Target[]} targets @param {Set<string>} names keys of the folder @param {() => void} changed */
export async function duplicate(bucket, targets, names, changed) {
  /** @type {Target[]} */
  const copies = [];
  const { done, failure } = await each(targets, async (target) => {
    let to = target.key;
    for (let number = 1; target.isFolder && names.has(to); number += 1) to = `${target.key.slice(0, -1)} (${number})/`;
    names.add(to);
    copies.push({ key: (await copyOne(bucket, target, to, target.isFolder ? "refuse" : "rename")).key, isFolder: target.isFolder });
  });
  changed();
  const undo = () => remove(bucket, copies, changed, changed);
  if (done.length > 0) note(`${named(done)} duplicated.`, { label: "Undo", run: undo }, { seconds: UNDO_SECONDS });
  if (failure) complain(failure, "Not duplicated");
}
