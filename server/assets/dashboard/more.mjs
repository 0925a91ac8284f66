// What else there is for a folder, where the row of buttons has no more room.

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
    ["globe", "Import from addresses …", "The server fetches files itself.", () => importAddresses(bucket, folder, changed)],
    ["link", "Copy an upload link", "Somebody without a key uploads here once, within an hour.", () => copyUploadLink(bucket, folder)],
    ["sliders", "Make links …", "To upload or download, with limits.", () => go(within("links", folder))],
    ["trash", "Deleted files", "What was deleted here and can come back.", () => go(within("deleted", folder))],
    ["plug", "Connect", "ShareX, curl, game servers, your own programs.", () => go(within("connect"))],
    ["bell", "Webhooks", "Be told what happens in the bucket.", () => go(within("webhooks"))],
    ["pencil", "Settings of the bucket", "Who reads it, limits, quotas; empty or delete it.", () => go(within("settings"))],
  ];
  const dialog = open(folder === "" ? bucket : folder, [make("ul", { class: "menu-list" }, ways.map(([image, label, what, run], at) => make("li", null,
    make("button", { type: "button", autofocus: at === 0, click: () => { dialog.close(); run(); } }, icon(image), make("span", null, make("strong", null, label), make("small", null, what))))))]);
}
