// The audit log: who changed what, and from where.

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
  ["session.", "Sign-ins"], ["password.", "Passwords"], ["job.", "Jobs"], ["webhook.", "Webhooks"], ["compaction.", "Compaction"], ["file.", "Files"], ["lifecycle.", "Expiry"],
];

/** Actions in words. @type {Record<string, string>} */
const WORDS = {
  "bucket.create": "Bucket created", "bucket.change": "Bucket settings changed", "bucket.delete": "Bucket deleted", "key.create": "API key created", "key.delete": "API key revoked",
  "account.create": "Account created", "account.change": "Account changed", "account.invite": "Account invited", "account.delete": "Account deleted", "organisation.create": "Organisation created",
  "organisation.change": "Organisation changed", "organisation.delete": "Organisation deleted", "member.invite": "Member invited", "member.add": "Member added", "member.remove": "Member removed",
  "session.begin": "Signed in", "session.refused": "Sign-in failed", "session.end": "Signed out", "password.change": "Password changed", "job.begin": "Job started",
  "job.cancel": "Job cancelled", "job.end": "Job finished", "webhook.create": "Webhook created", "webhook.change": "Webhook changed", "webhook.delete": "Webhook deleted",
  "link.create": "Link created", "link.change": "Link changed", "link.end": "Link ended", "link.upload": "Files uploaded by link",
  "compaction.begin": "Compaction started", "file.change": "File changed", "lifecycle.expire": "Files expired",
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

/** The target by name; its ID is the title. @param {any} it */
function target(it) {
  const name = it.targetName ?? (it.bucketName && it.target ? null : it.target);
  return [
    it.bucketName && make("code", null, it.bucketName), " ",
    name && make("span", { title: it.target }, name), " ",
    it.detail && make("small", null, it.detail),
  ];
}

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  const get = (/** @type {string} */ name) => place.values.get(name) ?? "";
  const filter = { bucketName: get("bucket"), action: get("action"), actor: get("actor") };
  const addressOf = (/** @type {any} */ it) => `/-/audit${query({ bucket: it.bucketName, action: it.action, actor: it.actor })}`;
  const buckets = (await frame.loaded).map((/** @type {any} */ it) => it.bucketName);
  const isFiltered = filter.action || filter.actor || filter.bucketName;
  const list = paged("Changes", [["When"], ["Action"], ["By"], ["Target", "wide"], ["IP address"]], async (cursor) => {
    const reply = await auditLog({ ...filter, before: cursor, limit: 100 });
    return { cursor: reply.nextCursor, rows: reply.entries.map((/** @type {any} */ it) => [
      make("time", { datetime: it.time }, moment(it.time)),
      what(it.action),
      actor(it.actor, (id) => addressOf({ ...filter, actor: id })),
      target(it),
      [it.address, " ", it.requestId && make("small", null, make("code", { title: "Request ID, as in the server log" }, it.requestId))],
    ]) };
  }, () => nothing("log", "No entries", isFiltered ? "No entries match the filter." : "Changes will appear here."));
  const fields = form([make("div", { class: "search-row" },
    choice("Action", { name: "action" }, ACTIONS, filter.action),
    choice("Bucket", { name: "bucketName" }, [["", "All buckets"], ...buckets.map((/** @type {string} */ it) => [it, it])], filter.bucketName),
    field("By (name or ID)", { name: "actor", value: filter.actor, spellcheck: "false", autocapitalize: "none", placeholder: "Account or API key" }))], "Filter", async (values) => go(addressOf(values)));
  return page("Audit log", { about: "Who changed what, and from where. Newest first." }, fields, list.element);
}
