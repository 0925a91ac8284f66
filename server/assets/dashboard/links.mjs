// Links of a bucket for people and clients without an account: shared pages, one-time uploads, temporary URLs of a file.

import { publicAddress } from "./address.mjs";
import { choice, field, form } from "./dialog.mjs";
import { fill, make } from "./dom.mjs";
import { downloadLink, uploadToken } from "./manage.mjs";
import { button, nothing, page, panel, snippet, tick } from "./parts.mjs";
import { go } from "./router.mjs";
import { request, share, sharedLinks } from "./share.mjs";
import { moment } from "./text.mjs";

/** Lifetimes of an upload link in seconds: the server allows one hour at most. @type {[string, string][]} */
const UPLOAD_LIVES = [["300", "5 minutes"], ["900", "15 minutes"], ["3600", "1 hour"]];
/** Lifetimes of a download link in seconds. @type {[string, string][]} */
const DOWNLOAD_LIVES = [["900", "15 minutes"], ["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"]];

/** A form that shows its result below. @param {any[]} contents @param {string} label @param {(values: any) => Promise<any[]>} work */
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
  if (name === "") return page("Links", {}, nothing("bucket", "No buckets yet", "Create a bucket first."));
  const bucket = buckets.find((/** @type {any} */ it) => it.bucketName === name);
  const path = (/** @type {Record<string, any>} */ attributes) => ({ name: "path", maxlength: 1024, spellcheck: "false", autocapitalize: "none", value: place.key, ...attributes });
  const shared = sharedLinks(name);
  const folder = place.key.slice(0, place.key.lastIndexOf("/") + 1);
  return page("Links", { about: "Share files or collect uploads from people without an account." },
    choice("Bucket", { change: (/** @type {any} */ event) => go(`/-/links/${encodeURIComponent(event.target.value)}/`) }, buckets.map((/** @type {any} */ it) => [it.bucketName, it.bucketName]), name),
    panel("Shared links", {
      about: "Pages with files, previews and downloads, and pages that request files.",
      actions: [button("Request files", () => request(name, folder, shared.load), { image: "upload" }), button(folder === "" ? "Share bucket" : "Share folder", () => share(name, [folder], bucket?.access === "public", shared.load), { image: "link" })],
    }, shared.element),
    make("div", { class: "columns" },
      panel("Upload link", { about: "Works for one upload, by a form or a client. Ends when you sign out." }, maker([
        field("Destination", path({ placeholder: "inbox/" }), "A folder ends with “/”; otherwise this is the file name. Leave empty for the bucket root."),
        choice("Expires after", { name: "expiresIn" }, UPLOAD_LIVES, "3600"),
        tick("Overwrite existing file", { name: "overwrite" }),
        tick("Random file name", { name: "randomizeName" }, "Makes the URL impossible to guess."),
        tick("Create thumbnail", { name: "thumbnail", checked: Boolean(bucket?.thumbnails) }),
      ], "Create upload link", async (values) => {
        const flag = (/** @type {string} */ it) => String(values[it] !== undefined);
        const answer = await uploadToken({ path: `${name}/${values.path.replace(/^\/+/, "")}`, expiresIn: values.expiresIn, overwrite: flag("overwrite"), randomizeName: flag("randomizeName"), thumbnail: flag("thumbnail") });
        return [make("p", { class: "faint" }, `Works for one upload until ${moment(answer.expiresAt)}.`), snippet("Upload link", answer.url), snippet("With curl", `curl -F file=@cat.jpg "${answer.url}"`)];
      })),
      panel("Download link", { about: bucket?.access === "public" ? "This bucket is public: file URLs work without a link and never expire." : "Anyone with the link can download this file until it expires." }, bucket?.access === "public"
        ? maker([field("File", path({ required: true, placeholder: "2026/cat.jpg" }))], "Show URL", async (values) => [snippet("URL", publicAddress(name, values.path.replace(/^\/+/, "")))])
        : maker([
          field("File", path({ required: true, placeholder: "2026/cat.jpg" })),
          choice("Expires after", { name: "expiresIn" }, DOWNLOAD_LIVES, "3600"),
        ], "Create download link", async (values) => {
          const answer = await downloadLink(name, { path: values.path.replace(/^\/+/, ""), expiresIn: Number(values.expiresIn) });
          return [make("p", { class: "faint" }, `Works until ${moment(answer.expiresAt)}.`), snippet("Download link", answer.url)];
        }))));
}
