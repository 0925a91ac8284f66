// The audit logs of settings and of files: who changed what, and from where.

import { query } from "./address.mjs";
import { choice, field, form } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { auditLog } from "./manage.mjs";
import { badge, nothing, page, paged } from "./parts.mjs";
import { go } from "./router.mjs";
import { moment } from "./text.mjs";

/** Filters by the beginning of an action. @type {[string, string][]} */
const ACTIONS = [
  ["", "All actions"], ["bucket.", "Buckets"], ["key.", "API keys"], ["account.", "Accounts"], ["organisation.", "Organisations"], ["member.", "Members"],
  ["session.", "Sign-ins"], ["password.", "Passwords"], ["job.", "Jobs"], ["webhook.", "Webhooks"], ["link.", "Links"], ["compaction.", "Compaction"], ["file.", "Files"], ["lifecycle.", "Expiry"],
];

/** Actions of the log of files. @type {[string, string][]} */
const FILE_ACTIONS = [["", "All actions"], ["file.upload", "Uploads"], ["file.copy", "Copies and moves"], ["file.delete", "Deletions"], ["file.expire", "Expiry"]];

/** @type {[string, string][]} */
const LOGS = [["", "Settings and access"], ["files", "Files"]];

/** Actions in words. @type {Record<string, string>} */
const WORDS = {
  "bucket.create": "Bucket created", "bucket.change": "Bucket settings changed", "bucket.delete": "Bucket deleted", "key.create": "API key created", "key.delete": "API key revoked",
  "account.create": "Account created", "account.change": "Account changed", "account.invite": "Account invited", "account.delete": "Account deleted", "organisation.create": "Organisation created",
  "organisation.change": "Organisation changed", "organisation.delete": "Organisation deleted", "member.invite": "Member invited", "member.add": "Member added", "member.remove": "Member removed",
  "session.begin": "Signed in", "session.refused": "Sign-in failed", "session.end": "Signed out", "password.change": "Password changed", "job.begin": "Job started",
  "job.cancel": "Job cancelled", "job.end": "Job finished", "webhook.create": "Webhook created", "webhook.change": "Webhook changed", "webhook.delete": "Webhook deleted",
  "link.create": "Link created", "link.change": "Link changed", "link.end": "Link ended", "link.upload": "Files uploaded by link",
  "link.download": "Link downloads", "link.refused": "Link requests refused",
  "compaction.begin": "Compaction started", "file.change": "File changed", "file.upload": "Uploaded", "file.copy": "Copied",
  "file.delete": "Deleted", "file.expire": "Expired", "lifecycle.expire": "Files expired",
};

/** Actors without a name. @type {Record<string, string>} */
const ACTORS = { operator: "Command line", server: "Server", session: "Unknown" };
const KINDS = /** @type {Record<string, string>} */ ({ session: "signed in", key: "API key" });

/** @param {string} action */
const what = (action) => make("span", { title: action }, badge(WORDS[action] ?? action, action.endsWith(".delete") || action.endsWith(".refused") ? "bad" : ""));

/** The actor, with a link to all of its entries: for a session, those of its account. @param {any} it @param {(id: string) => string} addressOf */
function actor(it, addressOf) {
  const id = it.kind === "session" ? it.account ?? it.id : it.id;
  const name = it.name ?? ACTORS[it.kind] ?? it.kind;
  if (!id) return name;
  return make("a", { href: addressOf(id), title: `Show only entries by this ${it.kind}` }, it.name || id, make("small", null, KINDS[it.kind] ?? it.kind));
}

/** The target by name; its ID is the title. A file has its path. @param {any} it */
function target(it) {
  const name = it.targetName ?? (it.bucketName && !it.action.startsWith("file.") ? null : it.target);
  return [
    it.bucketName && make("code", null, it.bucketName), " ",
    name && make("span", { title: it.target }, name), " ",
    it.detail && make("small", null, it.detail),
  ];
}

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  const get = (/** @type {string} */ name) => place.values.get(name) ?? "";
  const log = get("log") === "files" ? "files" : "";
  const filter = { log, bucketName: get("bucket"), action: get("action"), actor: get("actor"), ...log && { path: get("path"), name: get("name") } };
  const addressOf = (/** @type {any} */ it) => `/-/audit${query({ log: it.log, bucket: it.bucketName, action: it.action, actor: it.actor, path: it.path, name: it.name })}`;
  const buckets = (await frame.loaded).map((/** @type {any} */ it) => it.bucketName);
  const isFiltered = Object.entries(filter).some(([name, value]) => name !== "log" && value);
  const list = paged("Changes", [["When"], ["Action"], ["By"], ["Target", "wide"], ["IP address"]], async (cursor) => {
    const reply = await auditLog({ ...filter, before: cursor, limit: 100 });
    return { cursor: reply.nextCursor, rows: reply.entries.map((/** @type {any} */ it) => [
      make("time", { datetime: it.time }, moment(it.time)),
      what(it.action),
      actor(it.actor, (id) => addressOf({ ...filter, actor: id })),
      target(it),
      [it.address, " ", it.requestId && make("small", null, make("code", { title: "Request ID, as in the server log" }, it.requestId))],
    ]) };
  }, () => nothing("log", "No entries", isFiltered ? "No entries match the filter." : log ? "Uploads and deletions will appear here." : "Changes will appear here."));
  const fields = form([make("div", { class: "search-row" },
    choice("Log", { name: "log", change: (/** @type {any} */ event) => go(addressOf({ log: event.target.value, bucketName: filter.bucketName })) }, LOGS, log),
    choice("Action", { name: "action" }, log ? FILE_ACTIONS : ACTIONS, filter.action),
    choice("Bucket", { name: "bucketName" }, [["", "All buckets"], ...buckets.map((/** @type {string} */ it) => [it, it])], filter.bucketName),
    log && field("Name contains", { name: "name", value: filter.name, spellcheck: "false", autocapitalize: "none" }),
    log && field("File or folder", { name: "path", value: filter.path, spellcheck: "false", autocapitalize: "none", placeholder: "2026/ or 2026/cat.jpg" }),
    field("By (name or ID)", { name: "actor", value: filter.actor, spellcheck: "false", autocapitalize: "none", placeholder: "Account or API key" }))], "Filter", async (values) => go(addressOf(values)));
  return page("Audit log", { about: "Who changed what, and from where. Newest first." }, fields, list.element);
}
