// Links for people without a key: to upload once, and to get one file of a private bucket for a time.

import { publicAddress } from "./address.mjs";
import { choice, field, form } from "./dialog.mjs";
import { fill, make } from "./dom.mjs";
import { downloadLink, uploadToken } from "./manage.mjs";
import { nothing, page, panel, snippet, tick } from "./parts.mjs";
import { go } from "./router.mjs";
import { moment } from "./text.mjs";

/** How long an upload link is good, in seconds: the server gives no more than an hour. @type {[string, string][]} */
const UPLOAD_LIVES = [["300", "5 minutes"], ["900", "15 minutes"], ["3600", "an hour"]];
/** @type {[string, string][]} */
const DOWNLOAD_LIVES = [["900", "15 minutes"], ["3600", "an hour"], ["86400", "a day"], ["604800", "a week"]];

/** A form that shows what comes of it below. @param {any[]} contents @param {string} label @param {(values: any) => Promise<any[]>} work */
function maker(contents, label, work) {
  const outcome = make("div", { class: "outcome", role: "status" });
  return [form(contents, label, async (values) => {
    fill(outcome);
    fill(outcome, await work(values));
  }), outcome];
}

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  const buckets = await frame.loaded;
  const name = place.bucket || buckets[0]?.bucketName || "";
  if (name === "") return page("Links", {}, nothing("bucket", "No bucket yet", "A link leads to a bucket: make one first."));
  const bucket = buckets.find((/** @type {any} */ it) => it.bucketName === name);
  const path = (/** @type {Record<string, any>} */ attributes) => ({ name: "path", maxlength: 1024, spellcheck: "false", autocapitalize: "none", value: place.key, ...attributes });
  return page("Links", { about: "For somebody without a key or an account." },
    choice("Bucket", { change: (/** @type {any} */ event) => go(`/-/links/${encodeURIComponent(event.target.value)}/`) }, buckets.map((/** @type {any} */ it) => [it.bucketName, it.bucketName]), name),
    make("div", { class: "columns" },
      panel("To upload", { about: "Works for one upload, by a form or a program, and no longer than you stay signed in here." }, maker([
        field("Where to", path({ placeholder: "inbox/" }), "A folder ends with a slash; without one it is the name of the file. Leave it empty for the root of the bucket."),
        choice("Good for", { name: "expiresIn" }, UPLOAD_LIVES, "3600"),
        tick("Replace a file of that name", { name: "overwrite" }),
        tick("Give it a random name", { name: "randomizeName" }, "So that nobody can guess its address."),
        tick("Make a thumbnail", { name: "thumbnail", checked: Boolean(bucket?.thumbnails) }),
      ], "Make an upload link", async (values) => {
        const flag = (/** @type {string} */ it) => String(values[it] !== undefined);
        const answer = await uploadToken({ path: `${name}/${values.path.replace(/^\/+/, "")}`, expiresIn: values.expiresIn, overwrite: flag("overwrite"), randomizeName: flag("randomizeName"), thumbnail: flag("thumbnail") });
        return [make("p", { class: "faint" }, `Good for one upload until ${moment(answer.expiresAt)}.`), snippet("Upload link", answer.url), snippet("With curl", `curl -F file=@cat.jpg "${answer.url}"`)];
      })),
      panel("To download", { about: bucket?.access === "public" ? "The bucket is public: the plain address works, and does not end." : "One file, for a time, for everybody who has the link." }, bucket?.access === "public"
        ? maker([field("File", path({ required: true, placeholder: "2026/cat.jpg" }))], "Show its address", async (values) => [snippet("Address", publicAddress(name, values.path.replace(/^\/+/, "")))])
        : maker([
          field("File", path({ required: true, placeholder: "2026/cat.jpg" })),
          choice("Good for", { name: "expiresIn" }, DOWNLOAD_LIVES, "3600"),
        ], "Make a download link", async (values) => {
          const answer = await downloadLink(name, { path: values.path.replace(/^\/+/, ""), expiresIn: Number(values.expiresIn) });
          return [make("p", { class: "faint" }, `Good until ${moment(answer.expiresAt)}.`), snippet("Download link", answer.url)];
        }))));
}
