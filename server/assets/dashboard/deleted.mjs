// What was deleted or replaced in a bucket and can come back: one file, several, a whole folder.

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

/** So many versions are shown at a time. */
const ROWS = 100;
/** Pages may be empty although there are more: so many are asked for until one is asked oneself. */
const TRIES_MAX = 20;
/** Requests at once. */
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
  const it = page(`Deleted files of ${bucket}`, { about: ["What was deleted or replaced in ", make("a", { href: filesAddress(bucket) }, bucket), " and can come back, the last first."] });
  const body = make("div", { class: "part", tabindex: "-1" });
  const bar = make("div", { class: "chosen-row", role: "toolbar", "aria-label": "What is chosen" });
  const nameOfVersion = (/** @type {any} */ version) => `${version.lsn}`;

  const chooseAll = (/** @type {boolean} */ isChosen) => {
    chosen.clear();
    if (isChosen) for (const version of versions) chosen.set(nameOfVersion(version), version);
    for (const box of body.querySelectorAll("td input")) box.checked = isChosen;
    drawBar();
  };

  const drawBar = () => {
    redraw(bar,
      tick("All shown", { checked: versions.length > 0 && chosen.size === versions.length, disabled: versions.length === 0, "data-name": "all", change: (/** @type {any} */ event) => chooseAll(event.target.checked) }),
      make("span", { role: "status" }, chosen.size === 0 ? "Nothing is chosen" : `${count(chosen.size, "version")} chosen`),
      button("Bring back what is chosen", () => bringBack([...chosen.values()]), { class: "primary", image: "again", disabled: chosen.size === 0 }),
      button(prefix === "" ? "Bring back the whole bucket …" : `Bring back all of ${prefix} …`, () => bringFolder(), { name: "folder", disabled: prefix !== "" && !prefix.endsWith("/"), title: prefix !== "" && !prefix.endsWith("/") ? "A folder ends with a slash" : null }));
  };

  const draw = () => {
    const boxes = versions.map((version) => make("input", {
      type: "checkbox", "aria-label": `Choose ${version.path}`, "data-name": `choose-${version.lsn}`, checked: chosen.has(nameOfVersion(version)),
      change: (/** @type {any} */ event) => {
        if (event.target.checked) chosen.set(nameOfVersion(version), version);
        else chosen.delete(nameOfVersion(version));
        drawBar();
      },
    }));
    const more = cursor !== null && make("p", { class: "more" }, button("Show more", () => load(), { name: "more" }));
    if (versions.length === 0) {
      fill(body, nothing("check", "Nothing here can come back", prefix ? `Nothing whose name begins with “${prefix}” was deleted, or its space was given back.` : "Nothing was deleted, or its space was given back."), more);
      return;
    }
    const list = table("Versions that can come back", [["Choose", "act first"], ["File", "wide"], ["Size", "number"], ["What happened"], ["For how long"], ["Bring back", "act"]], versions.map((version, at) => [
      boxes[at],
      [make("strong", null, nameOf(version.path)), folderOf(version.path) !== "" && make("small", null, make("a", { href: addressOf(bucket, folderOf(version.path)) }, folderOf(version.path)))],
      bytes(version.bytes), [badge(version.state, version.state === "deleted" ? "bad" : ""), " ", when(version.deletedAt, "")],
      version.recoverableUntil ? ["until ", when(version.recoverableUntil)] : "until its space is given back",
      button("Bring back", () => bringBack([version]), { name: `back-${version.lsn}`, "aria-label": `Bring back ${version.path}` }),
    ]));
    fill(body, list.element, more);
  };

  const load = async () => {
    body.setAttribute("aria-busy", "true");
    const isFirst = versions.length === 0;
    if (isFirst) fill(body, make("p", { class: "faint waiting" }, "Looking through what was deleted …"));
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

  const bringBack = async (/** @type {any[]} */ wanted, /** @type {string | undefined} */ onConflict = undefined) => {
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
    if (done.length > 0) note(done.length === 1 ? `“${nameOf(done[0].path)}” is back${done[0].renamed ? `, as ${done[0].path}` : ""}.` : `${count(done.length, "file")} are back.`, { label: "Show", run: () => go(filesAddress(bucket, folderOf(done[0].path))) });
    if (problem) note(`${done.length > 0 ? "Not all came back: " : "Not brought back: "}${explain(problem)}`, null, { kind: "bad", seconds: 12 });
    if (taken.length > 0) {
      ask(taken.length === 1 ? "Its name is taken" : `${count(taken.length, "name")} are taken`, [
        make("p", null, taken.length === 1 ? `There is a file ${taken[0].path} now.` : "There are files of these names now."),
        choice("What to do", { name: "onConflict" }, [["rename", "Keep both: what comes back gets another name"], ["overwrite", "What comes back takes their place"]]),
      ], "Bring back", (values) => bringBack(taken, values.onConflict));
    }
    await again();
  };

  const bringFolder = () => ask(prefix === "" ? `Bring back all of ${bucket}` : `Bring back all of ${prefix}`, [
    make("p", null, "Brings back the newest whole version of each file that is missing. What is there stays as it is."),
    choice("Of what was deleted", { name: "since" }, [["1", "in the last hour"], ["24", "in the last day"], ["168", "in the last week"], ["", "at any time"]], "24"),
  ], "Bring back", async ({ since }) => {
    const { job } = await startJob({ kind: "undeleteFolder", bucketName: bucket, prefix, since: since ? new Date(Date.now() - Number(since) * 3_600_000).toISOString() : undefined });
    work.begin(job);
  });

  const work = jobList((job) => job.bucketName === bucket && job.kind === "undeleteFolder", it.stopped, { ended: again, empty: "Nothing is being brought back." });
  const search = form([make("div", { class: "search-row" },
    field("In the folder, or files that begin with", { name: "prefix", value: prefix, maxlength: 1024, placeholder: "2026/summer/", spellcheck: "false", autocapitalize: "none", "data-name": "prefix" }),
    prefix !== "" && make("a", { class: "as-button", href: addressOf(bucket, "") }, icon("close"), "All"))], "Show", async (values) => go(addressOf(bucket, values.prefix.replace(/^\/+/, ""))));
  drawBar();
  it.element.append(search, bar, body, panel("Whole folders", {}, work.element));
  load();
  return it;
}
