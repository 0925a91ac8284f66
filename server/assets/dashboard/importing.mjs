// Files that the server fetches itself: addresses, one in a line, into a folder.

import { watched } from "./actions.mjs";
import { startJob } from "./api.mjs";
import { ask, choice, field, open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { complain, note } from "./live.mjs";
import { lines, linesOf, table } from "./parts.mjs";
import { count } from "./text.mjs";

/** @param {string} bucket @param {string} folder @param {() => void} changed */
export function importAddresses(bucket, folder, changed) {
  ask("Import from addresses", [
    lines("Addresses", { name: "urls", rows: 6, required: true }, "One per line. The server fetches them itself, from public addresses only."),
    field("Into the folder", { name: "prefix", value: folder, maxlength: 1024, spellcheck: "false", autocapitalize: "none" }, "From the root of the bucket."),
    choice("When a name is taken", { name: "onConflict" }, [["rename", "keep both, the new one under another name"], ["overwrite", "replace it"], ["refuse", "skip it, and say so"]]),
  ], "Import", async (values) => {
    const urls = linesOf(values.urls);
    if (urls.length === 0) throw new Error("Give at least one address.");
    const wrong = urls.find((url) => !/^https?:/i.test(url) || !URL.canParse(url));
    if (wrong) throw new Error(`“${wrong}” is no address: it begins with http: or https:`);
    const prefix = values.prefix.replace(/^\/+/, "").replace(/([^/])$/, "$1/");
    const { job } = await startJob({ kind: "importUrls", bucketName: bucket, prefix, urls, onConflict: values.onConflict });
    // Behind the dialog, which is not needed any more.
    fetchAll(job, urls.length, changed);
  });
}

/** @param {any} begun the job @param {number} total addresses @param {() => void} changed */
async function fetchAll(begun, total, changed) {
  try {
    const job = await watched(begun, "Importing");
    const failures = job.failures ?? job.result?.failures ?? [];
    // Of many failures the first are told.
    const missed = job.result?.skipped ?? failures.length;
    const stored = Math.max(0, (job.done ?? total) - missed);
    if (failures.length === 0) note(`${count(stored, "file")} imported.`);
    else {
      open(`${count(stored, "file")} imported, ${count(missed, "address", "addresses")} not`, [make("div", { class: "told" },
        table("What was not imported", [["Address", "wide"], ["Why", "wide"]], failures.map((/** @type {any} */ it) => [make("code", null, it.url), it.error])).element)], { class: "wide" });
    }
  } catch (error) {
    complain(error, "Not imported");
  }
  changed();
}
