// API keys: which there are and what they open, new ones, and their end.

import { connections } from "./connect.mjs";
import { ask, choice, field } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { note } from "./live.mjs";
import { createKey, keys, revokeKey } from "./manage.mjs";
import { askFirst, badge, button, finder, nothing, page, part, snippet, table, tellOnce, tick, when } from "./parts.mjs";
import { amend } from "./router.mjs";
import { count } from "./text.mjs";

/** Scopes, and what they let one do; the first ones are what most keys need. @type {[string, string][]} */
const SCOPES = [
  ["upload", "store files"], ["read", "read files of private buckets"], ["list", "list and search files"], ["delete", "delete files"],
  ["presign", "make links for one upload"], ["manage", "make and change buckets, keys and webhooks"],
];
/** How long a key is good, in days. @type {[string, string][]} */
const LIVES = [["", "never"], ["1", "in a day"], ["7", "in a week"], ["30", "in 30 days"], ["90", "in 90 days"], ["365", "in a year"]];

/** @param {any} key */
const isOver = (key) => key.revokedAt !== null || (key.expiresAt !== null && Date.parse(key.expiresAt) <= Date.now());

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  let withEnded = false;
  const find = finder("Find", place, () => list.load());
  /** @type {{element: any, load: () => Promise<any>}} */
  const list = part(() => keys(find.text()), (all) => {
    find.tell(all.length);
    if (all.length === 0 && find.text()) return find.nothing();
    const alive = all.filter((key) => !isOver(key));
    const shown = withEnded ? all : alive;
    if (all.length === 0) return nothing("key", "No API key yet", "A key lets a program upload, read or manage, as far as its scopes go.", make("p", { class: "buttons" }, button("New API key", () => create(frame, list), { class: "primary", image: "plus" })));
    return [
      table("API keys", [["Name"], ["Scopes", "wide"], ["Where"], ["Last used"], ["Expires"], ["Revoke", "act"]], shown.map((key) => [
        [make("strong", null, key.name || "without a name"), make("small", null, make("code", null, key.id))],
        make("span", { class: "badges" }, key.scopes.map((/** @type {string} */ scope) => badge(scope, scope === "manage" ? "warn" : ""))),
        key.bucketName ? make("code", null, `${key.bucketName}/${key.prefix ?? ""}`) : "all buckets",
        when(key.lastUsedAt), key.revokedAt ? badge("revoked", "bad") : isOver(key) ? badge("expired", "bad") : when(key.expiresAt),
        key.revokedAt ? "" : button("Revoke", () => end(key, list), { class: "danger", name: `revoke-${key.id}`, "aria-label": `Revoke ${key.name || key.id}` }),
      ])).element,
      all.length > alive.length && make("p", { class: "more" }, button(withEnded ? "Hide those that ended" : `Show ${count(all.length - alive.length, "key that ended", "keys that ended")}`, () => {
        withEnded = !withEnded;
        list.load();
      }, { name: "ended" })),
    ];
  });
  const wanted = place.values.get("new");
  if (wanted !== null) {
    amend("/-/keys");
    create(frame, list, wanted);
  }
  return page("API keys", { about: "Programs show a key; people sign in. A key opens what its scopes say, and no more than you may yourself.", actions: [button("New API key", () => create(frame, list), { class: "primary", image: "plus" })] }, find.element, list.element);
}

/** @param {any} key @param {{load: () => any}} list */
function end(key, list) {
  askFirst(`Revoke ${key.name || key.id}`, "Programs that use it are refused from the next request on, and links that it handed out end. This cannot be taken back.", "Revoke it", async () => {
    await revokeKey(key.id);
    note(`“${key.name || key.id}” opens nothing any more.`);
    list.load();
  });
}

/** @param {any} frame @param {{load: () => any}} list @param {string} [wanted] the bucket that it is for */
async function create(frame, list, wanted = "") {
  const buckets = await frame.loaded.catch(() => []);
  ask("New API key", [
    field("Name", { name: "name", maxlength: 200, placeholder: "phone, backup, website …", spellcheck: "false" }, "What it is for, so that you know later which one to revoke."),
    make("fieldset", null, make("legend", null, "What it may do"),
      SCOPES.map(([scope, what]) => tick(scope, { name: `scope-${scope}`, checked: scope === "upload" }, what))),
    choice("Bucket", { name: "bucketName" }, [["", "all buckets"], ...buckets.map((/** @type {any} */ it) => [it.bucketName, it.bucketName])], wanted),
    field("Only in the folder", { name: "prefix", maxlength: 1024, placeholder: "calls/", spellcheck: "false", autocapitalize: "none" }, "Leave it empty for the whole bucket. A folder needs a bucket."),
    choice("Expires", { name: "days" }, LIVES, ""),
  ], "Create", async (values) => {
    const scopes = SCOPES.map(([scope]) => scope).filter((scope) => values[`scope-${scope}`] !== undefined);
    if (scopes.length === 0) throw new Error("Without a scope it may do nothing: choose one at least.");
    if (values.prefix && !values.bucketName) throw new Error("A folder lies in a bucket: choose which.");
    const expiresAt = values.days ? new Date(Date.now() + Number(values.days) * 86_400_000).toISOString() : undefined;
    const { key, s3, apiKey } = await createKey({ name: values.name, scopes, bucketName: values.bucketName || undefined, prefix: values.prefix || undefined, expiresAt });
    list.load();
    const bucket = apiKey.bucketName ?? buckets[0]?.bucketName;
    return () => tellOnce("Your new API key", "Save this key now; it will not be shown again.",
      make("div", { class: "snippets" }, snippet("API key", key),
        s3 && [snippet("S3 access key ID", s3.accessKeyId), snippet("S3 secret access key", s3.secretAccessKey)]),
      bucket && [make("h3", null, "Use it"), connections(bucket, { key, s3: s3 ?? null, scopes, prefix: apiKey.prefix || undefined })]);
  });
}
