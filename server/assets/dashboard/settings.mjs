// The settings of a bucket, and the actions that empty or delete it.

import { filesAddress } from "./address.mjs";
import { bucket as showBucket, startJob } from "./api.mjs";
import { choice, field, form } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { jobList } from "./jobs.mjs";
import { lifecycleRules } from "./lifecycle.mjs";
import { note } from "./live.mjs";
import { deleteBucket, editBucket, organisations } from "./manage.mjs";
import { askTyped, badge, button, facts, lines, linesOf, page, panel, part, tick, when } from "./parts.mjs";
import { go } from "./router.mjs";
import { sizeOf, sizeText } from "./sizes.mjs";
import { bytes, count, number } from "./text.mjs";

/** Roles in a bucket, from the least to the most access. */
const ROLES = ["viewer", "member", "admin", "owner"];

/** The role of an account in a bucket; the account that owns it has the role owner. @param {any} bucket @param {any} account */
async function roleIn(bucket, account) {
  if (bucket.organisation === null || bucket.account === account?.id) return "owner";
  const mine = (await organisations()).find((it) => it.id === bucket.organisation);
  return mine?.members.find((/** @type {any} */ it) => it.account === account?.id)?.role ?? "owner";
}

/** The values of the form that differ from the bucket. @param {any} bucket @param {any} values */
export function changesOf(bucket, values) {
  const text = (/** @type {string} */ it) => (it.trim() === "" ? null : it.trim());
  /** @type {Record<string, any>} */
  const wanted = {
    access: values.access,
    placeholder: text(values.placeholder),
    cacheControl: text(values.cacheControl),
    corsOrigins: linesOf(values.corsOrigins),
    allowedTypes: linesOf(values.allowedTypes),
    fileBytesMax: sizeOf(values.fileBytesMax, "Max. file size"),
    quotaBytes: sizeOf(values.quotaBytes, "Storage quota"),
    quotaObjects: text(values.quotaObjects) === null ? null : Number(values.quotaObjects),
    serveHtml: values.serveHtml !== undefined,
    thumbnails: values.thumbnails !== undefined,
    index: values.index !== undefined,
    compression: values.compression !== undefined,
  };
  if (wanted.corsOrigins.length === 0) wanted.corsOrigins = ["*"];
  const changed = Object.entries(wanted).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(bucket[name] ?? null));
  return Object.fromEntries(changed);
}

/** @param {any} bucket @param {boolean} mayChange @param {() => any} saved */
function settingsForm(bucket, mayChange, saved) {
  const it = form([
    make("fieldset", { disabled: !mayChange }, make("legend", null, "Access"),
      choice("Visibility", { name: "access" }, [["public", "Public – anyone with the URL"], ["private", "Private – signed-in users, API keys and links"]], bucket.access),
      tick("Search engines may index", { name: "index", checked: bucket.index }, "Public files only."),
      field("404 placeholder", { name: "placeholder", value: bucket.placeholder ?? "", placeholder: "missing.png", spellcheck: "false", autocapitalize: "none" }, "Sent with status 404 when a file is missing. A path in this bucket, or /bucket/path in another bucket of the same account."),
      field("Cache-Control", { name: "cacheControl", value: bucket.cacheControl ?? "", maxlength: 200, placeholder: "public, max-age=300, stale-while-revalidate=60", spellcheck: "false", autocapitalize: "none" }, "Cache lifetime in browsers and CDNs. Empty: the value shown. Files with random names are always cached for one year."),
      lines("Allowed origins (CORS)", { name: "corsOrigins", value: bucket.corsOrigins.join("\n") }, "One per line, with scheme and host, or * for any site."),
      tick("Serve HTML as pages", { name: "serveHtml", checked: bucket.serveHtml }, "Scripts stay disabled. When off, HTML is sent as plain text."),
      tick("Compress text-like files", { name: "compression", checked: bucket.compression }, "Text, JSON, SVG, JavaScript, CSS, WASM")),
    make("fieldset", { disabled: !mayChange }, make("legend", null, "Uploads"),
      lines("Allowed file types", { name: "allowedTypes", value: bucket.allowedTypes.join("\n"), placeholder: "image/*" }, "One per line, such as image/* or application/pdf. Empty: all types."),
      make("div", { class: "pair" },
        field("Max. file size", { name: "fileBytesMax", value: sizeText(bucket.fileBytesMax), placeholder: "Server limit" }, "For example 25 MB"),
        field("Storage quota", { name: "quotaBytes", value: sizeText(bucket.quotaBytes), placeholder: "No limit" }, "For example 20 GB")),
      field("File quota", { name: "quotaObjects", type: "number", min: 0, step: 1, value: bucket.quotaObjects ?? "", placeholder: "No limit" }),
      tick("Create thumbnails", { name: "thumbnails", checked: bucket.thumbnails }, "A 400 px WebP next to each image, unless an upload says otherwise.")),
  ], "Save", async (values) => {
    const changes = changesOf(bucket, values);
    if (Object.keys(changes).length === 0) return void note("No changes.");
    await editBucket(bucket.bucketName, changes);
    note("Saved.");
    saved();
  });
  if (!mayChange) /** @type {any} */ (it.querySelector("button[type=submit]")).disabled = true;
  return it;
}

/** @param {any} place @param {any} frame */
export function view(place, frame) {
  const name = place.bucket;
  const it = page(`${name} settings`, { about: make("a", { href: filesAddress(name) }, "Open files") });
  const settings = part(async () => {
    const bucket = await showBucket(name);
    return { bucket, role: await roleIn(bucket, frame.account) };
  }, ({ bucket, role }) => {
    const mayChange = ROLES.indexOf(role) >= 2;
    return [
      panel("General", {}, facts([
        ["Type", bucket.type === "phone" ? "Phone – for phones of game servers" : "Standard"],
        ["Contents", `${count(bucket.objectCount, "file")}, ${bytes(bucket.totalBytes)}`],
        ["Quota", bucket.quotaBytes || bucket.quotaObjects ? [quota("bytes", bucket.totalBytes, bucket.quotaBytes, bytes), quota("files", bucket.objectCount, bucket.quotaObjects, number)] : "No limit"],
        ["Owner", bucket.organisation ? make("a", { href: `/-/organisations/${bucket.organisation}` }, "Organisation") : "Your account"],
        ["Your role", badge(role)],
        ["Created", when(bucket.createdAt)],
      ])),
      panel("Settings", { about: mayChange ? null : `Read-only: your role is ${role}. Admins and owners can change settings.` }, settingsForm(bucket, mayChange, () => {
        frame.load();
        settings.load();
      })),
      panel("Expiry rules", { about: "Files that are deleted by their age, within a minute. They can be restored like other deleted files." }, lifecycleRules(bucket, mayChange, settings.load)),
      mayChange && panel("Danger zone", { class: "danger-panel", about: "Files from an emptied bucket can be restored for a while, under Deleted files. A deleted bucket can't be restored." }, make("div", { class: "choices" },
        make("div", null, make("p", null, make("strong", null, "Empty bucket"), make("small", null, "Deletes all files; keeps the bucket and its settings.")), button("Empty…", () => empty(bucket, work), { class: "danger" })),
        make("div", null, make("p", null, make("strong", null, "Delete bucket"), make("small", null, "Deletes all files, webhooks and settings. This can't be undone.")), button("Delete…", () => end(bucket, frame), { class: "danger" })))),
    ];
  });
  const work = jobList((job) => job.bucketName === name, it.stopped, { ended: () => { frame.load(); settings.load(); }, empty: "No jobs running" });
  it.element.append(make("div", null, settings.element), panel("Jobs", {}, work.element));
  return it;
}

/** @param {string} what @param {number} used @param {number | null} limit @param {(value: number) => string} words */
function quota(what, used, limit, words) {
  if (!limit) return null;
  return make("div", { class: "quota" }, make("progress", { max: limit, value: Math.min(used, limit), "aria-label": what === "files" ? "Usage of the file quota" : "Usage of the storage quota" }), make("small", null, `${words(used)} of ${words(limit)}${what === "files" ? " files" : ""}`));
}

/** @param {any} bucket @param {{begin: (job: any) => any}} work */
function empty(bucket, work) {
  askTyped(`Empty ${bucket.bucketName}`, `Deletes all ${count(bucket.objectCount, "file")} in the background. You can close this page or cancel the job.`, bucket.bucketName, "Empty bucket", async () => {
    const { job } = await startJob({ kind: "emptyBucket", bucketName: bucket.bucketName });
    note("Emptying the bucket. Progress is shown below.");
    work.begin(job);
  });
}

/** @param {any} bucket @param {any} frame */
function end(bucket, frame) {
  askTyped(`Delete ${bucket.bucketName}`, `Permanently deletes the bucket and ${count(bucket.objectCount, "file")}. This can't be undone.`, bucket.bucketName, "Delete bucket", async () => {
    const { deletedCount } = await deleteBucket(bucket.bucketName);
    note(`${bucket.bucketName} and ${count(deletedCount, "file")} deleted.`);
    frame.load();
    go("/-/");
  });
}

