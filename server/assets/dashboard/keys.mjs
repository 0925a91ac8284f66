// API keys: list, create and revoke.

import { connections } from "./connect.mjs";
import { ask, choice, field } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { note } from "./live.mjs";
import { createKey, keys, revokeKey } from "./manage.mjs";
import { askFirst, badge, button, finder, nothing, page, part, snippet, table, tellOnce, tick, when } from "./parts.mjs";
import { amend } from "./router.mjs";
import { count } from "./text.mjs";

/** Scopes and the access that they grant, most common first. @type {[string, string][]} */
const SCOPES = [
  ["upload", "Upload files"], ["read", "Read files in private buckets"], ["list", "List and search files"], ["delete", "Delete files"],
  ["presign", "Create upload and download links"], ["manage", "Manage buckets, keys and webhooks"],
];
/** Lifetimes of a key, in days. @type {[string, string][]} */
const LIVES = [["", "Never"], ["1", "In 1 day"], ["7", "In 7 days"], ["30", "In 30 days"], ["90", "In 90 days"], ["365", "In 1 year"]];

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
    if (all.length === 0) return nothing("key", "No API keys yet", "API keys give clients access to buckets. Create one to upload with curl, ShareX, S3 or your own code.", make("p", { class: "buttons" }, button("New API key", () => create(frame, list), { class: "primary", image: "plus" })));
    return [
      table("API keys", [["Name"], ["Scopes", "wide"], ["Bucket"], ["Last used"], ["Expires"], ["Revoke", "act"]], shown.map((key) => [
        [make("strong", null, key.name || "Unnamed"), make("small", null, make("code", null, key.id))],
        make("span", { class: "badges" }, key.scopes.map((/** @type {string} */ scope) => badge(scope, scope === "manage" ? "warn" : ""))),
        key.bucketName ? make("code", null, `${key.bucketName}/${key.prefix ?? ""}`) : "All buckets",
        when(key.lastUsedAt), key.revokedAt ? badge("Revoked", "bad") : isOver(key) ? badge("Expired", "bad") : when(key.expiresAt),
        key.revokedAt ? "" : button("Revoke", () => end(key, list), { class: "danger", name: `revoke-${key.id}`, "aria-label": `Revoke ${key.name || key.id}` }),
      ])).element,
      all.length > alive.length && make("p", { class: "more" }, button(withEnded ? "Hide expired and revoked keys" : `Show ${count(all.length - alive.length, "expired or revoked key")}`, () => {
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
  return page("API keys", { about: "API keys give clients access. A key never has more access than you do.", actions: [button("New API key", () => create(frame, list), { class: "primary", image: "plus" })] }, find.element, list.element);
}

/** @param {any} key @param {{load: () => any}} list */
function end(key, list) {
  askFirst(`Revoke ${key.name || key.id}`, "Clients using this key stop working at once, and its links end. This can't be undone.", "Revoke key", async () => {
    await revokeKey(key.id);
    note(`API key “${key.name || key.id}” revoked.`);
    list.load();
  });
}

/** @param {any} frame @param {{load: () => any}} list @param {string} [wanted] bucket to preselect */
async function create(frame, list, wanted = "") {
  const buckets = await frame.loaded.catch(() => []);
  ask("New API key", [
    field("Name", { name: "name", maxlength: 200, placeholder: "backup, website, phone…", spellcheck: "false" }, "What is this key for? Helps you find it later."),
    make("fieldset", null, make("legend", null, "Scopes"),
      SCOPES.map(([scope, what]) => tick(scope, { name: `scope-${scope}`, checked: scope === "upload" }, what))),
    choice("Bucket", { name: "bucketName" }, [["", "All buckets"], ...buckets.map((/** @type {any} */ it) => [it.bucketName, it.bucketName])], wanted),
    field("Folder (optional)", { name: "prefix", maxlength: 1024, placeholder: "calls/", spellcheck: "false", autocapitalize: "none" }, "Limits the key to one folder of the selected bucket."),
    choice("Expires", { name: "days" }, LIVES, ""),
  ], "Create", async (values) => {
    const scopes = SCOPES.map(([scope]) => scope).filter((scope) => values[`scope-${scope}`] !== undefined);
    if (scopes.length === 0) throw new Error("Select at least one scope.");
    if (values.prefix && !values.bucketName) throw new Error("Select a bucket to limit the key to a folder.");
    const expiresAt = values.days ? new Date(Date.now() + Number(values.days) * 86_400_000).toISOString() : undefined;
    const { key, s3, apiKey } = await createKey({ name: values.name, scopes, bucketName: values.bucketName || undefined, prefix: values.prefix || undefined, expiresAt });
    list.load();
    const bucket = apiKey.bucketName ?? buckets[0]?.bucketName;
    return () => tellOnce("API key created", "Save this key now; it will not be shown again.",
      make("div", { class: "snippets" }, snippet("API key", key),
        s3 && [snippet("S3 access key ID", s3.accessKeyId), snippet("S3 secret access key", s3.secretAccessKey)]),
      bucket && [make("h3", null, "Connect a client"), connections(bucket, { key, s3: s3 ?? null, scopes, prefix: apiKey.prefix || undefined })]);
  });
}
