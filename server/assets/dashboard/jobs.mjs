// Work that the server does behind an answer: what is under way, how far it is, and what became of it.

import { nameOf } from "./address.mjs";
import { cancelJob, isGone } from "./api.mjs";
import { fill, make } from "./dom.mjs";
import { complain, say } from "./live.mjs";
import { jobs } from "./manage.mjs";
import { badge, button, failure, table, when } from "./parts.mjs";
import { bytes, count, number } from "./text.mjs";

/** How often one looks, while something is under way and while nothing is. */
const BUSY_MS = 1000;
const IDLE_MS = 15_000;
/** What has ended stays in sight until so many newer ones have. */
const ENDED_MAX = 8;

/** @param {any} job */
export const isUnderWay = (job) => job.state === "waiting" || job.state === "running";

/** What a job does, in words. @param {any} job */
export function jobWords(job) {
  const folder = job.prefix ? `“${nameOf(job.prefix)}”` : "the bucket";
  switch (job.kind) {
    case "deleteFolder": return `Delete ${folder}`;
    case "emptyBucket": return "Empty the bucket";
    case "moveFolder": return `Move ${folder} to “${job.to}”`;
    case "undeleteFolder": return `Bring back what was in ${folder}`;
    case "importUrls": return `Import addresses into ${folder}`;
    case "compact": return "Compact the store";
    case "scrub": return "Scrub the store";
    default: return job.kind;
  }
}

/** How far a job is. @param {any} job */
function progressOf(job) {
  const amount = (/** @type {number} */ value) => (job.unit === "bytes" ? bytes(value) : number(value));
  const text = job.total ? `${amount(job.done)} of ${amount(job.total)}` : job.done > 0 ? amount(job.done) : "";
  return [make("progress", { max: job.total || null, value: job.total ? Math.min(job.done, job.total) : null, "aria-label": jobWords(job) }), make("small", null, text || "beginning")];
}

/** What came of a job. @param {any} job */
function outcomeOf(job) {
  if (job.state === "failed") return [badge("failed", "bad"), make("small", null, job.error ?? "")];
  const result = job.result ?? {};
  const failures = job.failures ?? result.failures ?? [];
  const files = job.unit === "addresses" ? job.done - (result.skipped ?? failures.length) : job.done;
  const words = [
    files > 0 && job.unit !== "bytes" && count(files, "file"), result.bytes > 0 && bytes(result.bytes), result.skipped > 0 && `${number(result.skipped)} passed over`,
    result.damageCount > 0 && count(result.damageCount, "damaged place"), failures.length > 0 && count(failures.length, "failure"),
  ].filter(Boolean).join(", ");
  return [job.state === "cancelled" ? badge("cancelled", "warn") : badge("done", result.damageCount > 0 ? "bad" : "good"), make("small", null, words),
    failures.length > 0 && make("details", null, make("summary", null, "What failed"), make("ul", null, failures.map((/** @type {any} */ it) => make("li", null, make("code", null, it.url), ` ${it.error}`))))];
}

/**
 * The jobs that `isMeant` lets through, watched until `stopped`. `ended` is called when one that was under way no longer is.
 * @param {(job: any) => boolean} isMeant @param {AbortSignal} stopped @param {{ended?: (job: any) => void, empty?: string}} [how]
 */
export function jobList(isMeant, stopped, { ended, empty = "Nothing is under way." } = {}) {
  const element = make("div", { class: "part" });
  /** @type {Map<string, any>} */
  let before = new Map();
  /** Those that somebody here began: they may have ended before one has looked. @type {Set<string>} */
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
    fill(element, shown.length === 0 ? make("p", { class: "faint" }, empty) : table("Jobs", [["What"], ["How far", "wide"], ["Begun"], ["Cancel", "act"]], shown.map((job) => [
      jobWords(job), isUnderWay(job) ? make("div", { class: "how-far" }, progressOf(job)) : make("div", { class: "how-far" }, outcomeOf(job)), when(job.createdAt),
      isUnderWay(job) ? button("Cancel", () => cancelJob(job.id).then(look, complain), { name: `cancel-${job.id}`, "aria-label": `Cancel: ${jobWords(job)}` }) : "",
    ])).element);
    if (isHeld) /** @type {any} */ (element.querySelector(`[data-name="${held}"]`))?.focus();
  };
  stopped.addEventListener("abort", () => clearTimeout(timer));
  look();
  return {
    element,
    /** Watches what was begun. @param {any} job */
    begin(job) {
      begun.add(job.id);
      return look();
    },
  };
}
