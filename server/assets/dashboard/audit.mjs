// Who changed what, and when: the log that operators and owners look into.

import { query } from "./address.mjs";
import { choice, field, form } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { auditLog } from "./manage.mjs";
import { badge, nothing, page, paged } from "./parts.mjs";
import { go } from "./router.mjs";
import { moment } from "./text.mjs";

/** Beginnings of actions, and what they are about. @type {[string, string][]} */
const ACTIONS = [
  ["", "anything"], ["bucket.", "buckets"], ["key.", "API keys"], ["account.", "accounts"], ["organisation.", "organisations"], ["member.", "members"],
  ["session.", "signing in and out"], ["password.", "passwords"], ["job.", "jobs"], ["webhook.", "webhooks"], ["compaction.", "compaction"],
];

/** What was done, in words; its name in the API is the title. @type {Record<string, string>} */
const WORDS = {
  "bucket.create": "bucket created", "bucket.change": "bucket changed", "bucket.delete": "bucket deleted", "key.create": "key created", "key.delete": "key revoked",
  "account.create": "account created", "account.change": "account changed", "account.invite": "account invited", "account.delete": "account deleted", "organisation.create": "organisation created",
  "organisation.change": "organisation changed", "organisation.delete": "organisation deleted", "member.invite": "member invited", "member.add": "member added", "member.remove": "member removed",
  "session.begin": "signed in", "session.refused": "sign-in refused", "session.end": "signed out", "password.change": "password changed", "job.begin": "job begun",
  "job.cancel": "job cancelled", "job.end": "job ended", "webhook.create": "webhook created", "webhook.change": "webhook changed", "webhook.delete": "webhook deleted",
  "compaction.begin": "compaction begun",
};

/** @param {string} action */
const what = (action) => make("span", { title: action }, badge(WORDS[action] ?? action, action.endsWith(".delete") || action.endsWith(".refused") ? "bad" : ""));

/** Who did it, and the way to all that it did: of a session, to what its account did. @param {any} it @param {(id: string) => string} addressOf */
function actor(it, addressOf) {
  const id = it.kind === "session" ? it.account ?? it.id : it.id;
  if (!id) return it.kind;
  return make("a", { href: addressOf(id), title: `${it.kind} ${it.id ?? ""}: only what it did` }, it.name || id, make("small", null, it.kind));
}

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  const get = (/** @type {string} */ name) => place.values.get(name) ?? "";
  const asked = { bucketName: get("bucket"), action: get("action"), actor: get("actor") };
  const addressOf = (/** @type {any} */ it) => `/-/audit${query({ bucket: it.bucketName, action: it.action, actor: it.actor })}`;
  const buckets = (await frame.loaded).map((/** @type {any} */ it) => it.bucketName);
  const list = paged("What was changed", [["When"], ["What"], ["By"], ["About", "wide"], ["From"]], async (cursor) => {
    const answer = await auditLog({ ...asked, before: cursor, limit: 100 });
    return { cursor: answer.nextCursor, rows: answer.entries.map((/** @type {any} */ it) => [
      make("time", { datetime: it.time }, moment(it.time)),
      what(it.action),
      actor(it.actor, (id) => addressOf({ ...asked, actor: id })),
      [it.bucketName && make("code", null, it.bucketName), " ", it.target, " ", it.detail && make("small", null, it.detail)],
      [it.address, " ", it.requestId && make("small", null, make("code", { title: "The id of the request, which stands in the server's log" }, it.requestId))],
    ]) };
  }, () => nothing("log", "Nothing to tell", asked.action || asked.actor || asked.bucketName ? "Nothing of this kind was changed." : "What is changed from now on stands here."));
  const filter = form([make("div", { class: "search-row" },
    choice("About", { name: "action" }, ACTIONS, asked.action),
    choice("Bucket", { name: "bucketName" }, [["", "all buckets"], ...buckets.map((/** @type {string} */ it) => [it, it])], asked.bucketName),
    field("By (id)", { name: "actor", value: asked.actor, spellcheck: "false", autocapitalize: "none", placeholder: "of an account or a key" }))], "Filter", async (values) => go(addressOf(values)));
  return page("Audit log", { about: "What was changed, by whom and from where, the newest first. Uploads and deletions of files are not in it." }, filter, list.element);
}
