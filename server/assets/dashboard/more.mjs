// The dialog of further actions on a folder and its bucket.

import { copyUploadLink } from "./copy.mjs";
import { open } from "./dialog.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { importAddresses } from "./importing.mjs";
import { go } from "./router.mjs";

/** @param {string} bucket @param {string} folder @param {() => void} changed */
export function more(bucket, folder, changed) {
  const within = (/** @type {string} */ view, /** @type {string} */ key = "") => `/-/${view}/${encodeURIComponent(bucket)}${key === "" ? "" : `/${key.split("/").map(encodeURIComponent).join("/")}`}`;
  /** @type {[string, string, string, () => any][]} */
  const ways = [
    ["globe", "Import from URLs…", "The server downloads the files.", () => importAddresses(bucket, folder, changed)],
    ["link", "Copy upload link", "For one upload to this folder without an account, within 1 hour.", () => copyUploadLink(bucket, folder)],
    ["sliders", "Create links…", "Upload and download links that expire.", () => go(within("links", folder))],
    ["trash", "Deleted files", "Restore files deleted from this folder.", () => go(within("deleted", folder))],
    ["plug", "Connect", "curl, S3, ShareX, game servers, your own code.", () => go(within("connect"))],
    ["bell", "Webhooks", "Get notified about changes in this bucket.", () => go(within("webhooks"))],
    ["pencil", "Bucket settings", "Visibility, limits and quotas; empty or delete the bucket.", () => go(within("settings"))],
  ];
  const dialog = open(folder === "" ? bucket : folder, [make("ul", { class: "menu-list" }, ways.map(([image, label, what, run], at) => make("li", null,
    make("button", { type: "button", autofocus: at === 0, click: () => { dialog.close(); run(); } }, icon(image), make("span", null, make("strong", null, label), make("small", null, what))))))]);
}
