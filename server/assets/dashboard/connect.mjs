// Configuration snippets for clients, with an API key filled in if one was just created.

import { load } from "./api.mjs";
import { choice } from "./dialog.mjs";
import { fill, make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { page, panel, part, snippet } from "./parts.mjs";
import { snippets } from "./programs.mjs";
import { go } from "./router.mjs";

/** Placeholder of the key in configurations of the server. */
const ANY_KEY = "API_KEY";

/** Placeholder of the bucket while none exists. */
const ANY_BUCKET = "BUCKET";

/** Public URL of the server. */
const base = () => document.documentElement.dataset.publicUrl || location.origin;

/** @param {string} name @param {string} text @param {string} type */
function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * Tabs with configuration snippets for a bucket.
 * @param {string} bucket
 * @param {{key?: string, s3?: any, scopes?: string[], prefix?: string}} [credentials] placeholders without
 */
export function connections(bucket, { key = ANY_KEY, s3, scopes, prefix } = {}) {
  const may = (/** @type {string} */ scope) => scopes === undefined || scopes.includes(scope);
  const asked = async (/** @type {string} */ name) => (await (await load("GET", `/-/integrations/${name}?bucket=${bucket === ANY_BUCKET ? "" : encodeURIComponent(bucket)}`)).text()).replaceAll(ANY_KEY, key);
  return part(async () => ({ sharex: JSON.stringify(JSON.parse(await asked("sharex")), null, 2), phone: await asked("lb-phone") }), ({ sharex, phone }) => {
    /** @type {[string, string, () => any][]} */
    const kinds = snippets({ base: base(), bucket, key, s3, scopes, prefix }).map(({ name, id, text }) => [name, id, () => snippet(name, text)]);
    if (may("upload")) {
      kinds.splice(1, 0, ["ShareX", "sharex", () => [
        make("p", { class: "faint" }, "Save the file and open it in ShareX. It uploads screenshots and copies their URL."),
        snippet("ShareX uploader", sharex, make("button", { type: "button", click: () => download(`trug-${bucket}.sxcu`, sharex, "application/json") }, icon("download"), "Download .sxcu")),
      ]], ["lb-phone", "phone", () => [
        make("p", { class: "faint" }, "For game servers. With the direct method every player can read the key: limit it to the upload scope and one folder."),
        snippet("lb-phone upload methods", phone),
      ]]);
    }
    const shown = make("div", { class: "shown" });
    const tabs = kinds.map(([name, id], at) => make("button", {
      type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "connection", tabindex: at === 0 ? 0 : -1, click: () => choose(at),
      keydown: (/** @type {KeyboardEvent} */ event) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (step === 0) return;
        event.preventDefault();
        choose((at + step + kinds.length) % kinds.length).focus();
      },
    }, name));
    const choose = (/** @type {number} */ at) => {
      tabs.forEach((tab, index) => {
        tab.setAttribute("aria-selected", String(index === at));
        tab.tabIndex = index === at ? 0 : -1;
      });
      shown.setAttribute("aria-labelledby", tabs[at].id);
      fill(shown, kinds[at][2]());
      return tabs[at];
    };
    shown.id = "connection";
    shown.setAttribute("role", "tabpanel");
    choose(0);
    return [make("div", { class: "tabs", role: "tablist", "aria-label": "Client" }, tabs), shown];
  }).element;
}

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  const buckets = (await frame.loaded).map((/** @type {any} */ it) => it.bucketName);
  const bucket = place.bucket || buckets[0] || ANY_BUCKET;
  const hasBucket = bucket !== ANY_BUCKET;
  const chosen = choice("Bucket", { change: (/** @type {any} */ event) => go(`/-/connect/${encodeURIComponent(event.target.value)}`) }, buckets.map((/** @type {string} */ it) => [it, it]), bucket);
  return page("Connect", {
    about: "Clients authenticate with an API key. Replace API_KEY below, or create a key to have it filled in.",
    actions: [make("a", { class: "as-button primary", href: `/-/keys?new=${hasBucket ? encodeURIComponent(bucket) : ""}` }, icon("key"), "New API key")],
  },
  buckets.length > 0 && chosen,
  panel("Clients", {}, connections(bucket)),
  panel("More", { about: "Everything in this dashboard uses the public HTTP API." },
    make("ul", { class: "ways" },
      make("li", null, make("a", { href: "/-/docs", "data-outside": true, target: "_blank", rel: "noopener" }, "Documentation")),
      make("li", null, make("a", { href: "/-/openapi.json", "data-outside": true, download: "trug-openapi.json" }, "OpenAPI 3.1 document")),
      hasBucket && make("li", null, make("a", { href: `/-/links/${encodeURIComponent(bucket)}/` }, "One-time upload link")),
      hasBucket && make("li", null, make("a", { href: `/-/webhooks/${encodeURIComponent(bucket)}` }, "Webhooks: get notified about changes")))));
}
