// Shared links: pages with files, or pages that request files, for people without an account. Creating, editing, listing and ending them.

import { copyAndTell } from "./copy.mjs";
import { ask, choice, field, open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { complain, note } from "./live.mjs";
import { createLink, editLink, endLink, links } from "./manage.mjs";
import { askFirst, badge, button, lines, linesOf, nothing, paged, snippet, tick } from "./parts.mjs";
import { sizeOf, sizeText } from "./sizes.mjs";
import { ago, count, day, moment, number } from "./text.mjs";

/** Lifetimes in seconds; empty for no expiry. @type {[string, string][]} */
const LIVES = [["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"], ["2592000", "30 days"], ["", "Never"]];
/** Whether the page asks for a name. @type {[string, string][]} */
const ASK_NAME = [["optional", "Optional"], ["required", "Required"], ["no", "No"]];
/** Choice that leaves the expiry of a link as it is. */
const UNCHANGED = "unchanged";

/** @type {Record<string, [string, ("" | "good" | "warn")?]>} */
const STATES = { active: ["Active", "good"], expired: ["Expired"], used_up: ["Limit reached", "warn"], ended: ["Ended"], blocked: ["Blocked", "warn"] };

/** The name of a file or folder. @param {string} path */
const nameOf = (path) => path.replace(/\/$/, "").split("/").at(-1) || "All files";
/** @param {any} link */
const titleOf = (link) => link.title || (link.paths.length === 1 ? nameOf(link.paths[0]) : count(link.paths.length, "item"));
/** Until when a link works. @param {any} link */
const until = (link) => (link.expiresAt ? `Works until ${moment(link.expiresAt)}.` : "Works until you end it.");

/** Opens a form that depends on the maximum lifetime of links, in days; null for none. @param {string} bucket @param {(daysMax: number | null) => any} show */
async function withMaximum(bucket, show) {
  try {
    show((await links(bucket, null, { limit: 1 })).daysMax);
  } catch (error) {
    complain(error);
  }
}

/** The lifetime of a link; those above the maximum are disabled. @param {any} link @param {number | null} daysMax */
function expiry(link, daysMax) {
  const most = daysMax === null ? Infinity : daysMax * 86_400;
  const isListed = most === Infinity || LIVES.some(([life]) => Number(life) === most);
  const lives = isListed ? LIVES : [...LIVES.filter(([life]) => life !== "" && Number(life) < most), [String(most), count(most / 86_400, "day")], ...LIVES.filter(([life]) => life === "" || Number(life) > most)];
  const chosen = link ? UNCHANGED : String(Math.min(most, 604_800));
  const all = choice("Expires", { name: "expiresIn" }, /** @type {any} */ (link ? [[UNCHANGED, link.expiresAt ? moment(link.expiresAt) : "Never (unchanged)"], ...lives] : lives), chosen);
  for (const option of all.querySelectorAll("option")) option.disabled = option.value === "" ? most < Infinity : Number(option.value) > most;
  return most < Infinity ? [all, make("p", { class: "faint" }, `This server allows links for up to ${count(most / 86_400, "day")}.`)] : [all];
}

/** Settings of both kinds. @param {any} link without one, of a new link @param {string} title by default @param {number | null} daysMax */
const common = (link, title, daysMax) => [
  field("Title", { name: "title", maxlength: 100, value: link?.title ?? "" }, `Heading of the page. Empty: ${title}.`),
  field("Message", { name: "message", maxlength: 500, value: link?.message ?? "" }),
  ...expiry(link, daysMax),
  field("Password", { name: "password", type: "password", minlength: 4, maxlength: 128, autocomplete: "new-password" }, link?.hasPassword ? "Empty: the current password stays." : "Optional."),
  ...(link?.hasPassword ? [tick("Remove the password", { name: "open" })] : []),
];

/** @param {any} link @param {number | null} daysMax */
const settings = (link, daysMax) => [
  ...common(link, "the name of the file or folder", daysMax),
  field("Download limit", { name: "downloadsMax", type: "number", min: 1, max: 1000000, value: link?.downloadsMax ?? "" }, "Optional. Previews of images do not count."),
  tick("Download everything as zip", { name: "zip", checked: link?.zip ?? true }),
];

/** @param {any} link @param {number | null} daysMax */
const requestSettings = (link, daysMax) => [
  ...common(link, "“Upload files”", daysMax),
  field("File limit", { name: "filesMax", type: "number", min: 1, max: 10000, required: true, value: link?.filesMax ?? 100 }),
  field("Size limit", { name: "bytesMax", required: true, value: sizeText(link?.bytesMax ?? 10e9) }, "All files together, for example 10 GB."),
  field("Max. file size", { name: "fileBytesMax", value: sizeText(link?.fileBytesMax ?? null), placeholder: "Bucket limit" }, "For example 25 MB"),
  lines("Allowed file types", { name: "allowedTypes", value: (link?.allowedTypes ?? []).join("\n"), placeholder: "image/*" }, "One per line, such as image/* or application/pdf. Empty: the types of the bucket."),
  choice("Ask for a name", { name: "askName" }, ASK_NAME, link?.askName ?? "optional"),
];

/** @param {any} values of the form */
const bodyOf = (values) => ({ ...commonOf(values), zip: values.zip !== undefined, downloadsMax: values.downloadsMax === "" ? null : Number(values.downloadsMax) });

/** @param {any} values of the form */
const requestOf = (values) => ({
  ...commonOf(values), filesMax: Number(values.filesMax), bytesMax: sizeOf(values.bytesMax, "Size limit") ?? 10e9,
  fileBytesMax: sizeOf(values.fileBytesMax, "Max. file size"), allowedTypes: linesOf(values.allowedTypes), askName: values.askName,
});

/** @param {any} values of the form */
const commonOf = (values) => ({
  title: values.title.trim(), message: values.message.trim(),
  ...(values.expiresIn === UNCHANGED ? {} : { expiresIn: values.expiresIn === "" ? null : Number(values.expiresIn) }),
  ...(values.password === "" ? {} : { password: values.password }),
  ...(values.open === undefined ? {} : { password: null }),
});

/** Shares files and folders. @param {string} bucket @param {string[]} paths @param {boolean} isPublic @param {() => any} [changed] */
export function share(bucket, paths, isPublic, changed) {
  const what = paths.length === 1 ? `“${nameOf(paths[0])}”` : count(paths.length, "item");
  const warning = isPublic && make("p", { class: "faint" }, "This bucket is public: the files' own URLs keep working after the link ends.");
  return withMaximum(bucket, (daysMax) => ask(`Share ${what}`, [...(warning ? [warning] : []), ...settings(null, daysMax)], "Create link", async (values) => {
    const { link } = await createLink(bucket, { paths, ...bodyOf(values) });
    changed?.();
    return () => created(link);
  }));
}

/** Requests files into a folder. @param {string} bucket @param {string} folder @param {() => any} [changed] */
export function request(bucket, folder, changed) {
  const about = make("p", { class: "faint" }, "Anyone with the link can upload, and sees none of the files.");
  return withMaximum(bucket, (daysMax) => ask(`Request files into “${nameOf(folder)}”`, [about, ...requestSettings(null, daysMax)], "Create link", async (values) => {
    const { link } = await createLink(bucket, { kind: "upload", paths: [folder], ...requestOf(values) });
    changed?.();
    return () => created(link);
  }));
}

/** @param {any} link */
function created(link) {
  open("Link created", [snippet("Link", link.url), make("p", { class: "faint" }, `${until(link)} End it any time under Links.`)]);
  copyAndTell(link.url, `Link copied. ${until(link)}`);
}

/** Lifetimes of links that are copied at once, in milliseconds: the minimum left of an existing one, and of a new one. */
const [LEFT_MIN, LIFE] = [86_400_000, 604_800_000];
/** Tolerated difference of the clocks of browser and server, in milliseconds. */
const SKEW = 3_600_000;

/** Whether a link has the settings of a new one. @param {any} link */
const isPlain = (link) => {
  const left = Date.parse(link.expiresAt ?? "") - Date.now();
  return left >= LEFT_MIN && left <= LIFE + SKEW && !link.hasPassword && link.downloadsMax === null && link.zip && link.title === "" && link.message === "";
};

/** Copies a plain link to a file or folder: the caller's own that works for another day, or a new one. @param {string} bucket @param {string} path */
export async function copyShared(bucket, path) {
  try {
    const own = await links(bucket, null, { kind: "download", state: "active", path, exact: true, own: true });
    const link = own.links.find(isPlain) ?? (await createLink(bucket, { paths: [path] })).link;
    await copyAndTell(link.url, `Link copied. Works until ${day(link.expiresAt)}.`, { label: "Change", run: () => edit(link, () => note("Link changed.")) });
  } catch (error) {
    complain(error);
  }
}

/** @param {any} link @param {() => any} changed */
function edit(link, changed) {
  const isRequest = link.kind === "upload";
  return withMaximum(link.bucketName, (daysMax) => ask(`Edit ${titleOf(link)}`, (isRequest ? requestSettings : settings)(link, daysMax), "Save", async (values) => {
    await editLink(link.id, isRequest ? requestOf(values) : bodyOf(values));
    changed();
  }));
}

/** @param {any} link @param {() => any} changed */
const end = (link, changed) => askFirst(`End ${titleOf(link)}`, "End this link? Everyone who has it loses access at once.", "End link", async () => {
  await endLink(link.id);
  changed();
  const undo = () => editLink(link.id, { ended: false }).then(changed, complain);
  note("Link ended.", { label: "Undo", run: undo }, { seconds: 10 });
});

/** What a link was used for. @param {any} link */
const usage = (link) => {
  if (link.kind === "upload") return count(link.uploadedFiles, "file");
  return link.downloadsMax === null ? number(link.downloadCount) : `${number(link.downloadCount)} of ${number(link.downloadsMax)}`;
};

/** A list of the shared links of a bucket. @param {string} bucket */
export function sharedLinks(bucket) {
  /** @param {any} link */
  const row = (link) => [
    make("span", null, titleOf(link), link.hasPassword && [" ", badge("Password")]),
    link.kind === "upload" ? "Request" : "Share",
    badge(...STATES[link.state]),
    link.expiresAt ? moment(link.expiresAt) : "Never",
    usage(link),
    number(link.viewCount),
    link.lastUsedAt ? make("time", { datetime: link.lastUsedAt, title: moment(link.lastUsedAt) }, ago(link.lastUsedAt)) : "Never",
    link.createdBy,
    ["active", "used_up"].includes(link.state) && make("span", { class: "buttons" },
      button("Copy", () => copyAndTell(link.url, `Link copied. ${until(link)}`), { name: `copy-${link.id}`, "aria-label": `Copy link ${titleOf(link)}` }),
      button("Edit", () => edit(link, list.load), { name: `edit-${link.id}`, "aria-label": `Edit link ${titleOf(link)}` }),
      button("End", () => end(link, list.load), { class: "danger", name: `end-${link.id}`, "aria-label": `End link ${titleOf(link)}` })),
  ];
  const list = paged("Shared links", [["Title"], ["Kind"], ["State"], ["Expires"], ["Used", "number"], ["Views", "number"], ["Last used"], ["Created by"], ["Actions", "act"]], async (cursor) => {
    const found = await links(bucket, cursor);
    return { rows: found.links.map(row), cursor: found.nextCursor };
  }, () => nothing("link", "No shared links yet", "Select files or folders, and choose Share… or Request files…"));
  return list;
}
