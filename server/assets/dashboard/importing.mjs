// Imports files from URLs into a folder: the server downloads them.

import { watched } from "./actions.mjs";
import { startJob } from "./api.mjs";
import { ask, choice, field, open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { complain, note } from "./live.mjs";
import { lines, linesOf, table } from "./parts.mjs";
import { count } from "./text.mjs";

/** @param {string} bucket @param {string} folder @param {() => void} changed */
export function importAddresses(bucket, folder, changed) {
  ask("Import from URLs", [
    lines("URLs", { name: "urls", rows: 6, required: true }, "One per line. The server downloads the files, from public hosts only."),
    field("Destination folder", { name: "prefix", value: folder, maxlength: 1024, spellcheck: "false", autocapitalize: "none" }, "Path from the bucket root."),
    choice("If a file exists", { name: "onConflict" }, [["rename", "Keep both"], ["overwrite", "Replace"], ["refuse", "Skip"]]),
  ], "Import", async (values) => {
    const urls = linesOf(values.urls);
    if (urls.length === 0) throw new Error("Enter at least one URL.");
    const wrong = urls.find((url) => !/^https?:/i.test(url) || !URL.canParse(url));
    if (wrong) throw new Error(`“${wrong}” isn't a URL. It must start with http: or https:`);
    const prefix = values.prefix.replace(/^\/+/, "").replace(/([^/])$/, "$1/");
    const { job } = await startJob({ kind: "importUrls", bucketName: bucket, prefix, urls, onConflict: values.onConflict });
    // The dialog closes while the job runs.
    fetchAll(job, urls.length, changed);
  });
}

/** @param {any} begun the job @param {number} total number of URLs @param {() => void} changed */
async function fetchAll(begun, total, changed) {
  try {
    const job = await watched(begun, "Importing from URLs");
    const failures = job.failures ?? job.result?.failures ?? [];
    // The job reports the first failures only.
    const missed = job.result?.skipped ?? failures.length;
    const stored = Math.max(0, (job.done ?? total) - missed);
    if (failures.length === 0) note(`${count(stored, "file")} imported.`);
    else {
      open(`${count(stored, "file")} imported, ${count(missed, "URL")} failed`, [make("div", { class: "report" },
        table("Failed imports", [["URL", "wide"], ["Error", "wide"]], failures.map((/** @type {any} */ it) => [make("code", null, it.url), it.error])).element)], { class: "wide" });
    }
  } catch (error) {
    complain(error, "Not imported");
  }
  changed();
}
