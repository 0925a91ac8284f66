// Actions on files and folders: delete, rename, new folder, download, and undo. Moving and copying is in `relocate.mjs`.

import { folderOf, nameOf } from "./address.mjs";
import { cancelJob, job, move, removeFile, startJob, undelete } from "./api.mjs";
import { ask, field } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { complain, note } from "./live.mjs";
import { count, number } from "./text.mjs";

/** @typedef {{key: string, isFolder: boolean}} Target */

/** Concurrent requests. */
const PARALLEL = 6;
/** How long an action can be undone. */
export const UNDO_SECONDS = 10;

/**
 * Runs work for each item, several at a time. Resolves with the items that are done and the first failure.
 * @template T @param {T[]} items @param {(item: T) => Promise<any>} work
 */
export async function each(items, work) {
  const waiting = [...items];
  /** @type {T[]} */
  const done = [];
  /** @type {any} */
  let failure = null;
  const one = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      try {
        await work(item);
        done.push(item);
      } catch (error) {
        failure ??= error;
      }
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, one));
  return { done, failure };
}

/** Starts a job and waits for its end. @param {any} request @param {string} doing */
export const awaited = async (request, doing) => watched((await startJob(request)).job ?? {}, doing);

/** Waits for the end of a job, with its progress in a note. @param {any} state the latest known state @param {string} doing */
export async function watched(state, doing) {
  /** @type {ReturnType<typeof note> | null} */
  let shown = null;
  for (let wait = 150; state.state === "waiting" || state.state === "running"; wait = Math.min(1500, wait * 1.5)) {
    await new Promise((done) => setTimeout(done, wait));
    state = (await job(state.id)).job;
    const { id } = state;
    if (wait > 500) shown ??= note(doing, { label: "Cancel", run: () => cancelJob(id).catch(complain) }, { seconds: 3600 });
    shown?.text(`${doing}: ${number(state.done ?? 0)}${state.total ? ` of ${number(state.total)}` : ""}`);
  }
  shown?.close();
  if (state.state === "failed") throw new Error(state.error || `${doing} failed`);
  if (state.state === "cancelled") throw new Error(`${doing} cancelled`);
  return state;
}

/** Targets in words: a name, or a count. @param {Target[]} targets */
export function named(targets) {
  if (targets.length === 1) return `“${nameOf(targets[0].key)}”`;
  return count(targets.length, "item");
}

/**
 * Deletes at once, and offers to undo.
 * @param {string} bucket @param {Target[]} targets @param {(keys: Set<string>) => void} gone @param {() => void} back
 */
export async function remove(bucket, targets, gone, back) {
  const { done, failure } = await each(targets, (target) =>
    target.isFolder ? awaited({ kind: "deleteFolder", bucketName: bucket, prefix: target.key }, `Deleting ${nameOf(target.key)}`) : removeFile(bucket, target.key));
  if (done.length > 0) {
    gone(new Set(done.map((target) => target.key)));
    note(`${named(done)} deleted.`, { label: "Undo", run: () => restore(bucket, done, back) }, { seconds: UNDO_SECONDS });
  }
  if (failure) complain(failure, `${named(targets.filter((target) => !done.includes(target)))} not deleted`);
}

/** @param {string} bucket @param {Target[]} targets @param {() => void} back */
async function restore(bucket, targets, back) {
  const { done, failure } = await each(targets, (target) =>
    target.isFolder ? awaited({ kind: "undeleteFolder", bucketName: bucket, prefix: target.key }, `Restoring ${nameOf(target.key)}`) : undelete(bucket, { path: target.key }));
  if (done.length > 0) note(`${named(done)} restored.`);
  if (failure) complain(failure, "Not restored");
  back();
}

/** @typedef {"refuse" | "rename" | "overwrite"} Policy what happens to a name that is taken */

/**
 * Moves a file, or a folder with its contents, to another key. Resolves with the key that it has now and whether files
 * stayed behind because their names are taken.
 * @param {string} bucket @param {Target} target @param {string} to @param {Policy} [onConflict]
 */
export async function moveOne(bucket, target, to, onConflict = "refuse") {
  if (!target.isFolder) return { key: (await move(bucket, { from: target.key, to, onConflict })).path, isPart: false };
  const state = await awaited({ kind: "moveFolder", bucketName: bucket, prefix: target.key, to, onConflict }, `Moving ${nameOf(target.key)}`);
  return { key: to, isPart: (state.result?.skipped ?? 0) > 0 };
}

/** @param {string} bucket @param {Target} target @param {() => void} changed */
export function rename(bucket, target, changed) {
  const before = nameOf(target.key);
  const slash = target.isFolder ? "/" : "";
  const dialog = ask(`Rename ${before}`, [field("Name", { name: "name", value: before, required: true, maxlength: 1024, spellcheck: "false" })], "Rename", async ({ name }) => {
    if (name === before) return;
    if (name.includes("/")) throw new Error("Names can't contain “/”. To change the folder, use Move.");
    const to = folderOf(target.key) + name + slash;
    await moveOne(bucket, target, to);
    changed();
    const undo = () => moveOne(bucket, { key: to, isFolder: target.isFolder }, target.key).then(changed, complain);
    note(`Renamed to “${name}”.`, { label: "Undo", run: undo }, { seconds: UNDO_SECONDS });
  });
  const input = dialog.querySelector("input");
  const dot = target.isFolder ? -1 : before.lastIndexOf(".");
  input.setSelectionRange(0, dot > 0 ? dot : before.length);
}

/** Opens a folder that does not exist yet: its first file creates it. @param {(name: string) => void} enter */
export function newFolder(enter) {
  ask("New folder", [
    field("Name", { name: "name", required: true, maxlength: 255, spellcheck: "false" }, "The folder is created when you upload a file into it."),
  ], "Open folder", async ({ name }) => {
    const clean = name.trim().replace(/^\/+|\/+$/g, "");
    if (clean === "" || clean.split("/").some((part) => part === "" || part === "." || part === "..")) {
      throw new Error("Invalid folder name: no part may be empty, “.” or “..”.");
    }
    enter(`${clean}/`);
  });
}

/** Downloads a file under its own name. @param {string} address */
export function download(address) {
  const link = make("a", { href: address, download: true, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}
