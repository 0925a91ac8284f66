// Background jobs: running ones with their progress, and the results of recent ones.

import { nameOf } from "./address.mjs";
import { cancelJob, isGone } from "./api.mjs";
import { fill, make } from "./dom.mjs";
import { complain, say } from "./live.mjs";
import { jobs } from "./manage.mjs";
import { badge, button, failure, table, when } from "./parts.mjs";
import { bytes, count, number } from "./text.mjs";

/** Poll intervals while a job is running, and while none is. */
const BUSY_MS = 1000;
const IDLE_MS = 15_000;
/** Ended jobs that are shown. */
const ENDED_MAX = 8;

/** @param {any} job */
export const isUnderWay = (job) => job.state === "waiting" || job.state === "running";

/** The label of a job. @param {any} job */
export function jobWords(job) {
  const folder = job.prefix ? `“${nameOf(job.prefix)}”` : "the bucket";
  switch (job.kind) {
    case "deleteFolder": return `Delete ${folder}`;
    case "emptyBucket": return "Empty bucket";
    case "moveFolder": return `Move ${folder} to “${job.to}”`;
    case "undeleteFolder": return `Restore ${folder}`;
    case "importUrls": return `Import URLs into ${folder}`;
    case "compact": return "Reclaim space (compaction)";
    case "scrub": return "Verify checksums (scrub)";
    default: return job.kind;
  }
}

/** The progress of a job. @param {any} job */
function progressOf(job) {
  const amount = (/** @type {number} */ value) => (job.unit === "bytes" ? bytes(value) : number(value));
  const text = job.total ? `${amount(job.done)} of ${amount(job.total)}` : job.done > 0 ? amount(job.done) : "";
  return [make("progress", { max: job.total || null, value: job.total ? Math.min(job.done, job.total) : null, "aria-label": jobWords(job) }), make("small", null, text || "Starting")];
}

/** The result of a job. @param {any} job */
function outcomeOf(job) {
  if (job.state === "failed") return [badge("Failed", "bad"), make("small", null, job.error ?? "")];
  const result = job.result ?? {};
  const failures = job.failures ?? result.failures ?? [];
  const files = job.unit === "addresses" ? job.done - (result.skipped ?? failures.length) : job.done;
  const words = [
    files > 0 && job.unit !== "bytes" && count(files, "file"), result.bytes > 0 && bytes(result.bytes), result.skipped > 0 && `${number(result.skipped)} skipped`,
    result.damageCount > 0 && count(result.damageCount, "damaged object"), failures.length > 0 && count(failures.length, "failure"),
  ].filter(Boolean).join(", ");
  return [job.state === "cancelled" ? badge("Cancelled", "warn") : badge("Done", result.damageCount > 0 ? "bad" : "good"), make("small", null, words),
    failures.length > 0 && make("details", null, make("summary", null, "Failures"), make("ul", null, failures.map((/** @type {any} */ it) => make("li", null, make("code", null, it.url), ` ${it.error}`))))];
}

/**
 * A list of the jobs that `isMeant` accepts, polled until `stopped`. `ended` is called when a running job has ended.
 * @param {(job: any) => boolean} isMeant @param {AbortSignal} stopped @param {{ended?: (job: any) => void, empty?: string}} [how]
 */
export function jobList(isMeant, stopped, { ended, empty = "No jobs running" } = {}) {
  const element = make("div", { class: "part" });
  /** @type {Map<string, any>} */
  let before = new Map();
  /** Jobs started here: they may end before the first poll. @type {Set<string>} */
  const begun = new Set();
  let drawn = "";
  /** @type {any} */
  let timer = 0;
  const look = async () => {
    clearTimeout(timer);
    let wait = IDLE_MS;
    try {
      /** @type {any[]} */
      const found = (await jobs(stopped)).filter(isMeant);
      const active = found.filter(isUnderWay);
      if (active.length > 0) wait = BUSY_MS;
      for (const job of found) {
        const was = begun.has(job.id) || (before.has(job.id) && isUnderWay(before.get(job.id)));
        if (was && !isUnderWay(job)) {
          begun.delete(job.id);
          say(`${jobWords(job)}: ${job.state}`);
          ended?.(job);
        }
      }
      before = new Map(found.map((job) => [job.id, job]));
      draw([...active, ...found.filter((job) => !isUnderWay(job)).slice(0, ENDED_MAX)]);
    } catch (error) {
      if (isGone(error)) return;
      fill(element, failure(error, look));
    }
    if (!stopped.aborted) timer = setTimeout(look, wait);
  };
  const draw = (/** @type {any[]} */ shown) => {
    const now = JSON.stringify(shown);
    if (now === drawn) return;
    drawn = now;
    const held = document.activeElement?.getAttribute("data-name");
    const isHeld = element.contains(document.activeElement);
    fill(element, shown.length === 0 ? make("p", { class: "faint" }, empty) : table("Jobs", [["Job"], ["Progress", "wide"], ["Started"], ["Cancel", "act"]], shown.map((job) => [
      jobWords(job), isUnderWay(job) ? make("div", { class: "how-far" }, progressOf(job)) : make("div", { class: "how-far" }, outcomeOf(job)), when(job.createdAt),
      isUnderWay(job) ? button("Cancel", () => cancelJob(job.id).then(look, complain), { name: `cancel-${job.id}`, "aria-label": `Cancel: ${jobWords(job)}` }) : "",
    ])).element);
    if (isHeld) /** @type {any} */ (element.querySelector(`[data-name="${held}"]`))?.focus();
  };
  stopped.addEventListener("abort", () => clearTimeout(timer));
  look();
  return {
    element,
    /** Watches a job that was started here. @param {any} job */
    begin(job) {
      begun.add(job.id);
      return look();
    },
  };
}
