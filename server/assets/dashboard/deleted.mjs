// Deleted and replaced files of a bucket: restores one version, several, or a whole folder.

import { filesAddress, folderOf, nameOf } from "./address.mjs";
import { explain, startJob, undelete } from "./api.mjs";
import { choice, field, form, ask } from "./dialog.mjs";
import { fill, make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { jobList } from "./jobs.mjs";
import { note } from "./live.mjs";
import { deleted } from "./manage.mjs";
import { badge, button, failure, nothing, page, panel, redraw, table, tick, when } from "./parts.mjs";
import { go } from "./router.mjs";
import { bytes, count } from "./text.mjs";

/** Versions loaded at a time. */
const ROWS = 100;
/** Pages requested for one step of the list: pages may be empty although more follow. */
const TRIES_MAX = 20;
/** Concurrent requests. */
const PARALLEL = 4;

/** @param {string} bucket @param {string} prefix */
const addressOf = (bucket, prefix) => `/-/deleted/${encodeURIComponent(bucket)}/${prefix.split("/").map(encodeURIComponent).join("/")}`;

/** @param {any} place */
export function view(place) {
  const { bucket, key: prefix } = place;
  /** @type {Map<string, any>} */
  const chosen = new Map();
  /** @type {any[]} */
  let versions = [];
  /** @type {string | null} */
  let cursor = null;
  const it = page(`Deleted files in ${bucket}`, { about: ["Deleted and replaced files in ", make("a", { href: filesAddress(bucket) }, bucket), " that can be restored. Newest first."] });
  const body = make("div", { class: "part", tabindex: "-1" });
  const bar = make("div", { class: "chosen-row", role: "toolbar", "aria-label": "Selection" });
  const nameOfVersion = (/** @type {any} */ version) => `${version.lsn}`;

  const chooseAll = (/** @type {boolean} */ isChosen) => {
    chosen.clear();
    if (isChosen) for (const version of versions) chosen.set(nameOfVersion(version), version);
    for (const box of body.querySelectorAll("td input")) box.checked = isChosen;
    drawBar();
  };

  const drawBar = () => {
    redraw(bar,
      tick("Select all shown", { checked: versions.length > 0 && chosen.size === versions.length, disabled: versions.length === 0, "data-name": "all", change: (/** @type {any} */ event) => chooseAll(event.target.checked) }),
      make("span", { role: "status" }, chosen.size === 0 ? "Nothing selected" : `${count(chosen.size, "version")} selected`),
      button("Restore selected", () => restore([...chosen.values()]), { class: "primary", image: "again", disabled: chosen.size === 0 }),
      button(prefix === "" ? "Restore entire bucket…" : `Restore ${prefix}…`, () => restoreFolder(), { name: "folder", disabled: prefix !== "" && !prefix.endsWith("/"), title: prefix !== "" && !prefix.endsWith("/") ? "Folder paths end with “/”" : null }));
  };

  const draw = () => {
    const boxes = versions.map((version) => make("input", {
      type: "checkbox", "aria-label": `Select ${version.path}`, "data-name": `choose-${version.lsn}`, checked: chosen.has(nameOfVersion(version)),
      change: (/** @type {any} */ event) => {
        if (event.target.checked) chosen.set(nameOfVersion(version), version);
        else chosen.delete(nameOfVersion(version));
        drawBar();
      },
    }));
    const more = cursor !== null && make("p", { class: "more" }, button("Show more", () => load(), { name: "more" }));
    if (versions.length === 0) {
      fill(body, nothing("check", "No deleted files", prefix ? `No deleted files under “${prefix}”. Files appear here until their space is reclaimed.` : "Deleted files appear here until their space is reclaimed."), more);
      return;
    }
    const list = table("Restorable versions", [["Select", "act first"], ["File", "wide"], ["Size", "number"], ["Deleted or replaced"], ["Restorable"], ["Restore", "act"]], versions.map((version, at) => [
      boxes[at],
      [make("strong", null, nameOf(version.path)), folderOf(version.path) !== "" && make("small", null, make("a", { href: addressOf(bucket, folderOf(version.path)) }, folderOf(version.path)))],
      bytes(version.bytes), [badge(version.state, version.state === "deleted" ? "bad" : ""), " ", when(version.deletedAt, "")],
      version.recoverableUntil ? ["Until ", when(version.recoverableUntil)] : "Until space is reclaimed",
      button("Restore", () => restore([version]), { name: `back-${version.lsn}`, "aria-label": `Restore ${version.path}` }),
    ]));
    fill(body, list.element, more);
  };

  const load = async () => {
    body.setAttribute("aria-busy", "true");
    const isFirst = versions.length === 0;
    if (isFirst) fill(body, make("p", { class: "faint waiting" }, "Loading deleted files…"));
    try {
      const wanted = versions.length + ROWS;
      for (let tries = 0; tries < TRIES_MAX && versions.length < wanted; tries += 1) {
        const answer = await deleted(bucket, prefix, cursor, it.stopped);
        versions.push(...answer.versions);
        cursor = answer.nextCursor;
        if (cursor === null) break;
      }
      draw();
      drawBar();
      if (!isFirst) body.focus({ preventScroll: true });
    } catch (error) {
      if (!it.stopped.aborted) fill(body, failure(error, load));
    }
    body.removeAttribute("aria-busy");
  };

  const again = () => {
    versions = [];
    cursor = null;
    chosen.clear();
    return load();
  };

  const restore = async (/** @type {any[]} */ wanted, /** @type {string | undefined} */ onConflict = undefined) => {
    const waiting = [...wanted];
    /** @type {any[]} */
    const done = [];
    /** @type {any[]} */
    const taken = [];
    /** @type {any} */
    let problem = null;
    await Promise.all(Array.from({ length: PARALLEL }, async () => {
      for (let version = waiting.shift(); version; version = waiting.shift()) {
        try {
          done.push(await undelete(bucket, { path: version.path, lsn: version.lsn, onConflict }));
        } catch (/** @type {any} */ error) {
          if (error.code === "already_exists") taken.push(version);
          else problem ??= error;
        }
      }
    }));
    if (done.length > 0) note(done.length === 1 ? `“${nameOf(done[0].path)}” restored${done[0].renamed ? ` as ${done[0].path}` : ""}.` : `${count(done.length, "file")} restored.`, { label: "Show", run: () => go(filesAddress(bucket, folderOf(done[0].path))) });
    if (problem) note(`${done.length > 0 ? "Some files were not restored: " : "Not restored: "}${explain(problem)}`, null, { kind: "bad", seconds: 12 });
    if (taken.length > 0) {
      ask(taken.length === 1 ? "Name already in use" : `${count(taken.length, "name")} already in use`, [
        make("p", null, taken.length === 1 ? `${taken[0].path} already exists.` : "Files with these names already exist."),
        choice("On conflict", { name: "onConflict" }, [["rename", "Keep both (rename restored files)"], ["overwrite", "Replace existing files"]]),
      ], "Restore", (values) => restore(taken, values.onConflict));
    }
    await again();
  };

  const restoreFolder = () => ask(prefix === "" ? `Restore ${bucket}` : `Restore ${prefix}`, [
    make("p", null, "Restores the latest intact version of each missing file. Existing files are not changed."),
    choice("Deleted", { name: "since" }, [["1", "Last hour"], ["24", "Last 24 hours"], ["168", "Last 7 days"], ["", "Any time"]], "24"),
  ], "Restore", async ({ since }) => {
    const { job } = await startJob({ kind: "undeleteFolder", bucketName: bucket, prefix, since: since ? new Date(Date.now() - Number(since) * 3_600_000).toISOString() : undefined });
    work.begin(job);
  });

  const work = jobList((job) => job.bucketName === bucket && job.kind === "undeleteFolder", it.stopped, { ended: again, empty: "No restore jobs running" });
  const search = form([make("div", { class: "search-row" },
    field("Folder or name prefix", { name: "prefix", value: prefix, maxlength: 1024, placeholder: "2026/summer/", spellcheck: "false", autocapitalize: "none", "data-name": "prefix" }),
    prefix !== "" && make("a", { class: "as-button", href: addressOf(bucket, "") }, icon("close"), "All"))], "Show", async (values) => go(addressOf(bucket, values.prefix.replace(/^\/+/, ""))));
  drawBar();
  it.element.append(search, bar, body, panel("Restore jobs", {}, work.element));
  load();
  return it;
}
