// How other programs upload here: ready configurations, with the key where there is one.

import { load } from "./api.mjs";
import { choice } from "./dialog.mjs";
import { fill, make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { page, panel, part, snippet } from "./parts.mjs";
import { go } from "./router.mjs";

/** Stands for the key in what the server writes. */
const ANY_KEY = "API_KEY";

/** Stands for the bucket where there is none yet. */
const ANY_BUCKET = "BUCKET";

/** Where the server is for others. */
const base = () => document.documentElement.dataset.publicUrl || location.origin;

/** For pages and programs in JavaScript. @param {string} bucket @param {string} key */
const script = (bucket, key) => [
  "// Runs in Node, Deno, Bun and browsers; in a browser everybody can read the key: use an upload link there.",
  "const form = new FormData();",
  'form.append("file", file);',
  `const answer = await fetch("${base()}/${bucket}/", {`,
  `  method: "POST", headers: { Authorization: "Bearer ${key}" }, body: form,`,
  "});",
  "const { url } = await answer.json();",
].join("\n");

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
 * Configurations of programs for a bucket, and a choice between them.
 * @param {string} bucket @param {string} [key]
 */
export function connections(bucket, key = ANY_KEY) {
  const asked = async (/** @type {string} */ name) => (await (await load("GET", `/-/integrations/${name}?bucket=${bucket === ANY_BUCKET ? "" : encodeURIComponent(bucket)}`)).text()).replaceAll(ANY_KEY, key);
  return part(async () => ({ curl: await asked("curl"), sharex: JSON.stringify(JSON.parse(await asked("sharex")), null, 2), phone: await asked("lb-phone") }), ({ curl, sharex, phone }) => {
    /** @type {[string, string, () => any][]} */
    const kinds = [
      ["Shell", "curl", () => snippet("Lines for a shell", curl)],
      ["ShareX", "sharex", () => [
        make("p", { class: "faint" }, "Save the file and open it: ShareX asks whether to use it from then on. Pictures of the screen then come with their address in the clipboard."),
        snippet("An uploader for ShareX", sharex, make("button", { type: "button", click: () => download(`trug-${bucket}.sxcu`, sharex, "application/json") }, icon("download"), "Save the file")),
      ]],
      ["lb-phone", "phone", () => [
        make("p", { class: "faint" }, "For game servers. In the direct method every player's game learns the key: give it the scope upload for one folder, and no more."),
        snippet("Upload methods for lb-phone", phone),
      ]],
      ["JavaScript", "script", () => snippet("From JavaScript", script(bucket, key))],
    ];
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
    return [make("div", { class: "tabs", role: "tablist", "aria-label": "Program" }, tabs), shown];
  }).element;
}

/** @param {any} place @param {any} frame */
export async function view(place, frame) {
  const buckets = (await frame.loaded).map((/** @type {any} */ it) => it.bucketName);
  const bucket = place.bucket || buckets[0] || ANY_BUCKET;
  const hasBucket = bucket !== ANY_BUCKET;
  const chosen = choice("Bucket", { change: (/** @type {any} */ event) => go(`/-/connect/${encodeURIComponent(event.target.value)}`) }, buckets.map((/** @type {string} */ it) => [it, it]), bucket);
  return page("Connect", {
    about: "Programs upload with an API key. Put yours where it says API_KEY below, or make one now: it is filled in.",
    actions: [make("a", { class: "as-button primary", href: `/-/keys?new=${hasBucket ? encodeURIComponent(bucket) : ""}` }, icon("key"), "New API key")],
  },
  buckets.length > 0 && chosen,
  panel("Programs", {}, connections(bucket)),
  panel("Everything else", { about: "All that this dashboard does is done by the HTTP API, with the same rules for everybody." },
    make("ul", { class: "ways" },
      make("li", null, make("a", { href: "/-/docs", "data-outside": true, target: "_blank", rel: "noopener" }, "The HTTP API, to read and to try")),
      make("li", null, make("a", { href: "/-/openapi.json", "data-outside": true, download: "trug-openapi.json" }, "The same for programs: OpenAPI 3.1")),
      hasBucket && make("li", null, make("a", { href: `/-/links/${encodeURIComponent(bucket)}/` }, "A link with which somebody without a key uploads once")),
      hasBucket && make("li", null, make("a", { href: `/-/webhooks/${encodeURIComponent(bucket)}` }, "Webhooks: be told what happens in a bucket")))));
}
