// Copying of text and of URLs.

import { publicAddress } from "./address.mjs";
import { explain, uploadLink } from "./api.mjs";
import { open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { note } from "./live.mjs";
import { count } from "./text.mjs";

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

/** @param {string} text @param {string} said @param {{label: string, run: () => any} | null} [action] */
export async function copyAndTell(text, said, action = null) {
  if (await copyText(text)) note(said, action, { seconds: action ? 6 : 3 });
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

/** Copies a URL for one upload without a key. @param {string} bucket @param {string} folder */
export async function copyUploadLink(bucket, folder) {
  try {
    const answer = await uploadLink(bucket, folder);
    await copyAndTell(answer.url, "Upload link copied. Works for one upload within 1 hour.");
  } catch (error) {
    note(explain(error), null, { kind: "bad" });
  }
}
