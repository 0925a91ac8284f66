// URLs of files, plain, as Markdown, HTML or BBCode, or of the page of a public file.

import { fileAddress, nameOf, publicAddress, publicBase } from "./address.mjs";
import { copyAndTell } from "./copy.mjs";
import { open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { kindOfName } from "./kinds.mjs";
import { count } from "./text.mjs";

/** @param {string} text */
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
/** @param {string} name */
const isShown = (name) => ["picture", "vector"].includes(kindOfName(name));

/** @typedef {[string, (url: string, name: string) => string, ((bucket: string, key: string) => string)?]} Form */

/** @type {Form[]} */
const FORMS = [
  ["Link", (url) => url],
  ["Markdown", (url, name) => `${isShown(name) ? "!" : ""}[${name.replace(/[[\]\\]/g, "\\$&")}](${url.replaceAll("(", "%28").replaceAll(")", "%29")})`],
  ["HTML", (url, name) => (isShown(name) ? `<img src="${escaped(url)}" alt="${escaped(name)}">` : `<a href="${escaped(url)}">${escaped(name)}</a>`)],
  ["BBCode", (url, name) => (isShown(name) ? `[img]${url}[/img]` : `[url=${url}]${name}[/url]`)],
];

/** The page of a public file, with a preview. @type {Form} */
const PAGE = ["Page", (url) => url, (bucket, key) => `${publicBase()}/-/v${fileAddress(bucket, key)}`];

/** Offers the URLs of files in several formats. @param {string} bucket @param {string[]} keys @param {boolean} isPublic */
export function chooseForm(bucket, keys, isPublic) {
  const rows = [...FORMS, ...(isPublic ? [PAGE] : [])].map(([label, write, address = publicAddress], at) => {
    const text = keys.map((key) => write(address(bucket, key), nameOf(key))).join("\n");
    return make("li", null,
      make("span", null, make("strong", null, label), make("code", null, text)),
      make("button", { type: "button", autofocus: at === 0, "aria-label": `Copy: ${label}`, click: async () => { dialog.close(); await copyAndTell(text, `${label} copied`); } }, icon("copy"), "Copy"));
  });
  const forTime = keys.length === 1 && make("p", null, make("a", { href: `/-/links${fileAddress(bucket, keys[0])}`, click: () => dialog.close() }, "Create a download link…"));
  const dialog = open(keys.length === 1 ? `Copy link to ${nameOf(keys[0])}` : `Copy ${count(keys.length, "link")}`, [make("ul", { class: "forms" }, rows), ...(forTime ? [forTime] : [])], { class: "wide" });
}
