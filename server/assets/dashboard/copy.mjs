// URLs of files, plain or as Markdown, HTML or BBCode.

import { fileAddress, nameOf, publicAddress } from "./address.mjs";
import { explain, uploadLink } from "./api.mjs";
import { open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { kindOfName } from "./kinds.mjs";
import { note } from "./live.mjs";
import { count } from "./text.mjs";

/** @param {string} text */
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
/** @param {string} name */
const isShown = (name) => ["picture", "vector"].includes(kindOfName(name));

/** @type {[string, (url: string, name: string) => string][]} */
const FORMS = [
  ["Link", (url) => url],
  ["Markdown", (url, name) => `${isShown(name) ? "!" : ""}[${name.replace(/[[\]\\]/g, "\\$&")}](${url.replaceAll("(", "%28").replaceAll(")", "%29")})`],
  ["HTML", (url, name) => (isShown(name) ? `<img src="${escaped(url)}" alt="${escaped(name)}">` : `<a href="${escaped(url)}">${escaped(name)}</a>`)],
  ["BBCode", (url, name) => (isShown(name) ? `[img]${url}[/img]` : `[url=${url}]${name}[/url]`)],
];

/** Copies text to the clipboard, also without TLS. @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { class: "unseen", readonly: true, "aria-hidden": "true" });
    area.value = text;
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    // An open dialog makes the rest of the page inert.
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    before?.focus();
    return isDone;
  }
}

/** @param {string} text @param {string} said */
export async function copyAndTell(text, said) {
  if (await copyText(text)) note(said, null, { seconds: 3 });
  else showText("Copy manually", text);
}

/** Shows text for copying manually. @param {string} title @param {string} text */
function showText(title, text) {
  const area = make("textarea", { readonly: true, rows: 4, "aria-label": title });
  area.value = text;
  open(title, [area]);
  area.select();
}

/** Copies the links of files. @param {string} bucket @param {string[]} keys */
export const copyLinks = (bucket, keys) =>
  copyAndTell(keys.map((key) => publicAddress(bucket, key)).join("\n"), `${count(keys.length, "link")} copied`);

/** Offers the URLs of files in several formats. @param {string} bucket @param {string[]} keys */
export function chooseForm(bucket, keys) {
  const rows = FORMS.map(([label, write], at) => {
    const text = keys.map((key) => write(publicAddress(bucket, key), key.split("/").at(-1) ?? key)).join("\n");
    return make("li", null,
      make("span", null, make("strong", null, label), make("code", null, text)),
      make("button", { type: "button", autofocus: at === 0, "aria-label": `Copy: ${label}`, click: async () => { dialog.close(); await copyAndTell(text, `${label} copied`); } }, icon("copy"), "Copy"));
  });
  const forTime = keys.length === 1 && make("p", null, make("a", { href: `/-/links${fileAddress(bucket, keys[0])}`, click: () => dialog.close() }, "Create a download link…"));
  const dialog = open(keys.length === 1 ? `Copy link to ${nameOf(keys[0])}` : `Copy ${count(keys.length, "link")}`, [make("ul", { class: "forms" }, rows), ...(forTime ? [forTime] : [])], { class: "wide" });
}

/** Copies a URL for one upload without a key. @param {string} bucket @param {string} folder */
export async function copyUploadLink(bucket, folder) {
  try {
    const answer = await uploadLink(bucket, folder);
    await copyAndTell(answer.url, "Upload link copied. Works for one upload within 1 hour.");
  } catch (error) {
    note(explain(error), null, { kind: "bad" });
  }
}
