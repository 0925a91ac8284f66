// Search over all buckets: results grouped by bucket, the best of each first.

import { filesAddress, searchAddress } from "./address.mjs";
import { explain, isGone, search } from "./api.mjs";
import { fill, make } from "./dom.mjs";
import { nothing, page } from "./parts.mjs";
import { marked } from "./search.mjs";
import { bytes, count, day } from "./text.mjs";
import { kindOfName } from "./kinds.mjs";

/** Results of each bucket. */
const RESULTS_MAX = 8;
/** Concurrent searches: the server runs few at a time. */
const PARALLEL = 3;

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  const buckets = await frame.loaded;
  const groups = make("div", { class: "results" });
  const status = make("p", { class: "faint", role: "status" });
  const it = page("Search", { about: status }, groups);
  let stopped = new AbortController();

  /** @param {string} text */
  const run = async (text) => {
    stopped.abort();
    stopped = new AbortController();
    const { signal } = stopped;
    document.title = `${text} – trug`;
    frame.searchAll(text);
    if (text === "") {
      status.textContent = "Type to search the names of files and folders in all buckets.";
      return fill(groups);
    }
    status.textContent = "Searching…";
    /** @type {Map<string, any>} */
    const found = new Map();
    let problem = null;
    const waiting = [...buckets];
    const next = async () => {
      for (let bucket = waiting.shift(); bucket !== undefined; bucket = waiting.shift()) {
        const name = bucket.bucketName;
        try {
          const reply = await search(name, { q: text, limit: RESULTS_MAX }, signal);
          if (reply.hits.length > 0) found.set(name, reply);
        } catch (error) {
          if (isGone(error)) return;
          problem = error;
        }
        if (!signal.aborted) draw(text, found);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, next));
    if (signal.aborted) return;
    const total = [...found.values()].reduce((sum, reply) => sum + reply.total, 0);
    const isExact = [...found.values()].every((reply) => reply.totalIsExact);
    status.textContent = `${isExact ? "" : "At least "}${count(total, "result")} in ${count(found.size, "bucket")}${problem ? `. ${explain(problem)}` : ""}`;
    if (total === 0) fill(groups, nothing("search", "No results", `No results for “${text}”. Try a shorter or different query.`));
  };

  /** @param {string} text @param {Map<string, any>} found */
  const draw = (text, found) => fill(groups, [...found].sort(([one], [other]) => (one < other ? -1 : 1)).map(([bucket, reply]) =>
    make("section", { class: "panel", "aria-label": bucket },
      make("header", null, make("h2", null, make("a", { href: filesAddress(bucket) }, bucket)),
        reply.total > reply.hits.length && make("a", { href: searchAddress(bucket, { q: text }) }, `All ${count(reply.total, "result")}`)),
      make("ul", { class: "result-list" }, reply.hits.map((/** @type {any} */ hit) => {
        const end = hit.type === "folder" ? hit.key.length - 1 : hit.key.length;
        const start = end - hit.name.length;
        return make("li", null, make("a", { href: filesAddress(bucket, hit.key) },
          make("span", { class: "name", "data-kind": hit.type === "folder" ? "folder" : kindOfName(hit.name) }, make("span", null, marked(hit.key, hit.matches, start, end))),
          make("small", null, marked(hit.key, hit.matches, 0, start))),
        make("span", { class: "faint" }, hit.type === "folder" ? "Folder" : `${bytes(hit.size)} · ${day(hit.lastModified)}`));
      })))));

  const text = (/** @type {any} */ at) => (at.values.get("q") ?? "").trim();
  run(text(place));
  return {
    ...it,
    title: "",
    /** Shows another query without building the page again. @param {any} next */
    follow(next) {
      if (next.view !== "search" || next.bucket !== "") return false;
      run(text(next));
      return true;
    },
    close() {
      stopped.abort();
      it.close();
    },
  };
}
