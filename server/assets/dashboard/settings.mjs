// All that can be set of a bucket, and its end: emptied by a job, or deleted.

import { filesAddress } from "./address.mjs";
import { bucket as showBucket, startJob } from "./api.mjs";
import { choice, field, form } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { jobList } from "./jobs.mjs";
import { note } from "./live.mjs";
import { deleteBucket, editBucket, organisations } from "./manage.mjs";
import { askTyped, badge, button, facts, lines, linesOf, page, panel, part, tick, when } from "./parts.mjs";
import { go } from "./router.mjs";
import { sizeOf, sizeText } from "./sizes.mjs";
import { bytes, count, number } from "./text.mjs";

/** What somebody may do in a bucket, from little to all. */
const ROLES = ["viewer", "member", "admin", "owner"];

/** The role of an account in a bucket; whoever owns the bucket owns it. @param {any} bucket @param {any} account */
async function roleIn(bucket, account) {
  if (bucket.organisation === null || bucket.account === account?.id) return "owner";
  const mine = (await organisations()).find((it) => it.id === bucket.organisation);
  return mine?.members.find((/** @type {any} */ it) => it.account === account?.id)?.role ?? "owner";
}

/** What of the form differs from the bucket. @param {any} bucket @param {any} values */
export function changesOf(bucket, values) {
  const text = (/** @type {string} */ it) => (it.trim() === "" ? null : it.trim());
  /** @type {Record<string, any>} */
  const wanted = {
    access: values.access,
    placeholder: text(values.placeholder),
    cacheControl: text(values.cacheControl),
    corsOrigins: linesOf(values.corsOrigins),
    allowedTypes: linesOf(values.allowedTypes),
    fileBytesMax: sizeOf(values.fileBytesMax, "The largest file"),
    quotaBytes: sizeOf(values.quotaBytes, "The quota"),
    quotaObjects: text(values.quotaObjects) === null ? null : Number(values.quotaObjects),
    serveHtml: values.serveHtml !== undefined,
    thumbnails: values.thumbnails !== undefined,
    index: values.index !== undefined,
  };
  if (wanted.corsOrigins.length === 0) wanted.corsOrigins = ["*"];
  const changed = Object.entries(wanted).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(bucket[name] ?? null));
  return Object.fromEntries(changed);
}

/** @param {any} bucket @param {boolean} mayChange @param {() => any} saved */
function settingsForm(bucket, mayChange, saved) {
  const it = form([
    make("fieldset", { disabled: !mayChange }, make("legend", null, "Reading"),
      choice("Who may read its files", { name: "access" }, [["public", "Anyone with the address"], ["private", "With a key or a link, or signed in"]], bucket.access),
      tick("Search engines may index", { name: "index", checked: bucket.index }, "Public files only."),
      field("Where a file is missing, send", { name: "placeholder", value: bucket.placeholder ?? "", placeholder: "missing.png", spellcheck: "false", autocapitalize: "none" }, "A file of this bucket, or /bucket/file of another one of the same account. It is sent with status 404."),
      field("Cache-Control", { name: "cacheControl", value: bucket.cacheControl ?? "", maxlength: 200, placeholder: "public, max-age=300, stale-while-revalidate=60", spellcheck: "false", autocapitalize: "none" }, "How long browsers and proxies keep files; as shown where this is empty. Files with random names are always kept for a year."),
      lines("Pages that may read its files", { name: "corsOrigins", value: bucket.corsOrigins.join("\n") }, "Origins, one per line; * for all."),
      tick("Send HTML as pages", { name: "serveHtml", checked: bucket.serveHtml }, "Without scripts. Where this is off, HTML is sent as plain text.")),
    make("fieldset", { disabled: !mayChange }, make("legend", null, "Storing"),
      lines("Types that it takes", { name: "allowedTypes", value: bucket.allowedTypes.join("\n"), placeholder: "image/*" }, "Media types, one per line, such as image/* or application/pdf. Leave it empty for all."),
      make("div", { class: "pair" },
        field("Largest file", { name: "fileBytesMax", value: sizeText(bucket.fileBytesMax), placeholder: "as the server allows" }, "Such as 25 MB."),
        field("Quota", { name: "quotaBytes", value: sizeText(bucket.quotaBytes), placeholder: "none" }, "Such as 20 GB.")),
      field("Most files", { name: "quotaObjects", type: "number", min: 0, step: 1, value: bucket.quotaObjects ?? "", placeholder: "any number" }),
      tick("Make thumbnails of pictures", { name: "thumbnails", checked: bucket.thumbnails }, "For uploads that do not say otherwise.")),
  ], "Save", async (values) => {
    const changes = changesOf(bucket, values);
    if (Object.keys(changes).length === 0) return void note("Nothing was changed.");
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
  const it = page(`Settings of ${name}`, { about: make("a", { href: filesAddress(name) }, "Open its files") });
  const settings = part(async () => {
    const bucket = await showBucket(name);
    return { bucket, role: await roleIn(bucket, frame.account) };
  }, ({ bucket, role }) => {
    const mayChange = ROLES.indexOf(role) >= 2;
    return [
      panel("About it", {}, facts([
        ["Kind", bucket.type === "phone" ? "phone: for phones and tablets of game servers" : "standard"],
        ["Holds", `${count(bucket.objectCount, "file")}, ${bytes(bucket.totalBytes)}`],
        ["Quota", bucket.quotaBytes || bucket.quotaObjects ? [quota("bytes", bucket.totalBytes, bucket.quotaBytes, bytes), quota("files", bucket.objectCount, bucket.quotaObjects, number)] : "none"],
        ["Belongs to", bucket.organisation ? make("a", { href: `/-/organisations/${bucket.organisation}` }, "an organisation") : "your account"],
        ["Your role", badge(role)],
        ["Created", when(bucket.createdAt)],
      ])),
      panel("Settings", { about: mayChange ? null : `Your role is ${role}: an admin or the owner of the organisation may change them.` }, settingsForm(bucket, mayChange, () => {
        frame.load();
        settings.load();
      })),
      mayChange && panel("Danger zone", { class: "danger-panel", about: "What was emptied can be brought back for a while, under Deleted files. A bucket that was deleted cannot." }, make("div", { class: "choices" },
        make("div", null, make("p", null, make("strong", null, "Empty it"), make("small", null, "Deletes every file, and leaves the bucket and its settings.")), button("Empty …", () => empty(bucket, work), { class: "danger" })),
        make("div", null, make("p", null, make("strong", null, "Delete it"), make("small", null, "With all files, webhooks and settings. Its name is free again when the files are gone.")), button("Delete …", () => end(bucket, frame), { class: "danger" })))),
    ];
  });
  const work = jobList((job) => job.bucketName === name, it.stopped, { ended: () => { frame.load(); settings.load(); }, empty: "Nothing is under way. Emptying, moving and bringing back show here how far they are." });
  it.element.append(make("div", null, settings.element), panel("Work in this bucket", {}, work.element));
  return it;
}

/** @param {string} what @param {number} used @param {number | null} limit @param {(value: number) => string} words */
function quota(what, used, limit, words) {
  if (!limit) return null;
  return make("div", { class: "quota" }, make("progress", { max: limit, value: Math.min(used, limit), "aria-label": `Quota of ${what}` }), make("small", null, `${words(used)} of ${words(limit)}${what === "files" ? " files" : ""}`));
}

/** @param {any} bucket @param {{begin: (job: any) => any}} work */
function empty(bucket, work) {
  askTyped(`Empty ${bucket.bucketName}`, `All that is in it, ${count(bucket.objectCount, "file")}, is deleted by a job, which goes on without this page, and which you can cancel.`, bucket.bucketName, "Empty it", async () => {
    const { job } = await startJob({ kind: "emptyBucket", bucketName: bucket.bucketName });
    note("It is being emptied. How far that is stands below.");
    work.begin(job);
  });
}

/** @param {any} bucket @param {any} frame */
function end(bucket, frame) {
  askTyped(`Delete ${bucket.bucketName}`, `The bucket is gone from then on, for everybody, with ${count(bucket.objectCount, "file")}. Nothing of it comes back.`, bucket.bucketName, "Delete it", async () => {
    const { deletedCount } = await deleteBucket(bucket.bucketName);
    note(`${bucket.bucketName} is deleted, with ${count(deletedCount, "file")}.`);
    frame.load();
    go("/-/");
  });
}

