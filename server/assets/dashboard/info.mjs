// The description of a file: address, type, size, headers, metadata, camera, earlier versions, and shared links; and its form.

import { nameOf, query } from "./address.mjs";
import { isGone, undelete } from "./api.mjs";
import { copyAndTell } from "./copy.mjs";
import { ask, choice, field, open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { complain, note } from "./live.mjs";
import { deleted, describe, editObject, links } from "./manage.mjs";
import { button, facts, lines, linesOf, part } from "./parts.mjs";
import { bytes, moment, number } from "./text.mjs";

/** Choice that leaves the expiry as it is. */
const UNCHANGED = "unchanged";
/** Lifetimes in seconds; empty for no expiry. @type {[string, string][]} */
const LIVES = [["3600", "In 1 hour"], ["86400", "In 1 day"], ["604800", "In 7 days"], ["2592000", "In 30 days"], ["31536000", "In 365 days"], ["", "Never"]];
/** Earlier versions and links that are shown. */
const ROWS = 10;

/**
 * Shows the description of a file.
 * @param {import("./browser.mjs").Browser} view @param {string} key
 */
export function info(view, key) {
  const { bucket } = view;
  const [mayEdit, mayShare] = [view.may("upload"), view.may("presign")];
  const reload = () => {
    all.load();
    view.changed();
  };
  const all = part(async () => {
    const [object, earlier, shared] = await Promise.all([
      describe(bucket, key),
      deleted(bucket, key, null).then((page) => page.versions.filter((/** @type {any} */ it) => it.path === key).slice(0, ROWS), () => []),
      mayShare ? links(bucket, null, { path: key, state: "active", limit: ROWS }).then((page) => page.links, () => []) : [],
    ]);
    return { object, earlier, shared };
  }, ({ object, earlier, shared }) => [
    facts([
      ["URL", make("span", { class: "copied" }, make("code", null, object.url), " ", button("Copy", () => copyAndTell(object.url, "URL copied"), { name: "copy-url", "aria-label": "Copy URL" }))],
      ["Size", `${bytes(object.size)}${object.size < 1000 ? "" : ` (${number(object.size)} bytes)`}`],
      ["Type", object.contentType],
      ...(object.width ? [/** @type {[string, any]} */ (["Dimensions", `${number(object.width)} × ${number(object.height)}`])] : []),
      ["Modified", moment(object.lastModified)],
      ["Created", moment(object.createdAt)],
      ["ETag", make("code", null, object.etag)],
      ["Cache-Control", object.cacheControl ?? "Default of the bucket"],
      ["Download name", object.contentDisposition ?? "Name of the file"],
      ["Expires", object.expiresAt ? `${moment(object.expiresAt)}${object.expiresByRule === null ? "" : ` (rule ${object.expiresByRule})`}` : "Never"],
    ]),
    make("p", { class: "buttons" }, mayEdit && button("Edit…", () => edit(bucket, object, reload), { name: "edit" }), make("a", { href: `/-/audit${query({ log: "files", bucket, path: key })}` }, "Uploads and deletions of this name")),
    ...section("Metadata", Object.entries(object.metadata)),
    ...section("Camera", cameraFacts(object.camera)),
    object.camera?.hasLocation && make("p", { class: "faint" }, "The original contains a location."),
    ...section("Earlier versions", earlier.map((/** @type {any} */ version) => [
      version.deletedAt ? moment(version.deletedAt) : "Earlier",
      make("span", null, `${bytes(version.bytes)}, ${version.state} `, mayEdit && button("Restore", () => restore(bucket, version, reload), { name: `back-${version.lsn}`, "aria-label": `Restore the version of ${moment(version.deletedAt)}` })),
    ])),
    ...section("Shared links", shared.map((/** @type {any} */ link) => [link.title || nameOf(link.paths[0]), make("span", null, link.expiresAt ? `Until ${moment(link.expiresAt)} ` : "No expiry ", button("Copy", () => copyAndTell(link.url, "Link copied"), { name: `copy-${link.id}`, "aria-label": `Copy link ${link.title || nameOf(link.paths[0])}` }))])),
  ]);
  open(nameOf(key), [all.element], { class: "wide info" });
}

/** A heading and facts, if there are any. @param {string} title @param {any[]} pairs */
const section = (title, pairs) => (pairs.length === 0 ? [] : [make("h3", null, title), facts(pairs)]);

/** @param {any} camera @returns {[string, any][]} */
function cameraFacts(camera) {
  if (!camera) return [];
  /** @type {[string, any][]} */
  const all = [["Camera", [camera.make, camera.model].filter(Boolean).join(" ")], ["Lens", camera.lens], ["Taken", camera.takenAt?.replace("T", ", ")], ["Exposure", camera.exposure], ["ISO", camera.iso && number(camera.iso)], ["Focal length", camera.focalLength]];
  return all.filter(([, value]) => value);
}

/** @param {string} bucket @param {any} object @param {() => any} saved */
function edit(bucket, object, saved) {
  const before = Object.entries(object.metadata).map(([key, value]) => `${key}=${value}`).join("\n");
  const isOwn = object.expiresAt !== null && object.expiresByRule === null;
  ask(`Edit ${nameOf(object.path)}`, [
    field("Type", { name: "contentType", value: object.contentType, required: true, spellcheck: "false", autocapitalize: "none" }, "Must fit the content: an image stays an image."),
    field("Cache-Control", { name: "cacheControl", value: object.cacheControl ?? "", maxlength: 512, spellcheck: "false", autocapitalize: "none" }, "Empty: the default of the bucket."),
    field("Content-Disposition", { name: "contentDisposition", value: object.contentDisposition ?? "", maxlength: 512, placeholder: "attachment; filename=\"report.pdf\"", spellcheck: "false", autocapitalize: "none" }, "Empty: shown in the browser under its own name."),
    choice("Expires", { name: "expiresIn" }, [[UNCHANGED, isOwn ? moment(object.expiresAt) : "Unchanged"], ...LIVES], UNCHANGED),
    lines("Metadata", { name: "metadata", value: before, placeholder: "camera=X100" }, "One key=value per line. Keys: a–z, 0–9, “.”, “_” and “-”."),
  ], "Save", async (values) => {
    const text = (/** @type {string} */ it) => (it.trim() === "" ? null : it.trim());
    const change = {
      ...(values.contentType === object.contentType ? {} : { contentType: values.contentType.trim() }),
      ...(text(values.cacheControl) === object.cacheControl ? {} : { cacheControl: text(values.cacheControl) }),
      ...(text(values.contentDisposition) === object.contentDisposition ? {} : { contentDisposition: text(values.contentDisposition) }),
      ...(values.expiresIn === UNCHANGED ? {} : { expiresIn: values.expiresIn === "" ? null : Number(values.expiresIn) }),
      ...(linesOf(values.metadata).join("\n") === before ? {} : { metadata: metadataOf(values.metadata) }),
    };
    await editObject(bucket, object.path, change);
    note("Saved.");
    saved();
  });
}

/** @param {string} text lines of key=value */
function metadataOf(text) {
  return Object.fromEntries(linesOf(text).map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

/** @param {string} bucket @param {any} version @param {() => any} done */
async function restore(bucket, version, done) {
  try {
    await undelete(bucket, { path: version.path, lsn: version.lsn, onConflict: "overwrite" });
    note("Version restored.");
    done();
  } catch (error) {
    if (!isGone(error)) complain(error, "Restore");
  }
}
