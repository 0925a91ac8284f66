// The menus of the file list: of the selection, and of the folder. Entries that the role forbids are absent.

import { isPicture } from "./kinds.mjs";
import { openMenu } from "./menu.mjs";
import { count } from "./text.mjs";

/** @typedef {import("./browser.mjs").Browser} Browser @typedef {import("./menu.mjs").Item} Item */

/** An entry, if it applies. @param {any} applies @param {Item} item @returns {Item[]} */
const item = (applies, item) => (applies ? [item] : []);

/** Opens the menu of the selected entries. @param {Browser} view @param {{x: number, y: number} | Element} at */
export function selectionMenu(view, at) {
  const targets = view.targets();
  if (targets.length === 0) return;
  const [first] = targets;
  const isOne = targets.length === 1;
  const hasFiles = targets.some((it) => !it.isFolder);
  openMenu(isOne ? `Actions for ${first.name}` : `Actions for ${count(targets.length, "item")}`, [
    ...item(isOne, { label: "Open", image: first.isFolder ? "folder" : "file", keys: "↵", run: () => view.open(view.rows.indexOf(first)) }),
    ...item(view.may("presign"), { label: "Share…", image: "link", run: () => view.share() }),
    ...item(isOne && first.isFolder && view.may("presign") && view.may("upload"), { label: "Request files…", image: "upload", run: () => view.request(first.key) }),
    ...item(view.mayCopy(targets), { label: isOne ? "Copy link" : "Copy links", image: "link", keys: "c", run: () => view.copy() }),
    ...item(hasFiles, { label: "Copy as…", image: "code", keys: "f", run: () => view.copyForms() }),
    { label: isOne && hasFiles ? "Download" : "Download as zip", image: "download", keys: "d", run: () => view.download() },
    null,
    ...item(isOne && view.may("move"), { label: "Rename", image: "pencil", keys: "F2", run: () => view.rename() }),
    ...item(view.may("move"), { label: "Move to…", image: "move", keys: "m", run: () => view.move() }),
    ...item(view.may("upload"), { label: "Copy to…", image: "copy", run: () => view.copyTo() }),
    ...item(view.may("upload"), { label: "Duplicate", image: "plus", run: () => view.duplicate() }),
    null,
    ...item(isOne && !first.isFolder, { label: "Info", image: "info", keys: "i", run: () => view.info(first.key) }),
    ...item(isOne && !first.isFolder && isPicture(first.name), { label: "Transform…", image: "sliders", run: () => view.transform(first.key) }),
    null,
    ...item(view.may("delete"), { label: "Delete", image: "trash", keys: "Del", isDanger: true, run: () => view.remove() }),
  ], at);
}

/** Opens the menu of the folder. @param {Browser} view @param {{x: number, y: number} | Element} at */
export function folderMenu(view, at) {
  const mayUpload = view.may("upload") && !view.isSearch;
  openMenu(`Actions for ${view.folder || view.bucket}`, [
    ...item(mayUpload, { label: "Upload files", image: "upload", keys: "u", run: () => view.picker.click() }),
    ...item(mayUpload, { label: "Upload folder", image: "folderUp", run: () => view.folderPicker.click() }),
    ...item(mayUpload, { label: "New folder", image: "newFolder", keys: "n", run: () => view.newFolder() }),
    ...item(mayUpload, { label: "Import from URLs…", image: "globe", run: () => view.importUrls() }),
    ...item(mayUpload && view.may("presign"), { label: "Request files…", image: "link", run: () => view.request(view.folder) }),
    null,
    ...item(view.rows.length > 0 && !view.isSearch, { label: "Download as zip", image: "download", run: () => view.downloadFolder() }),
    ...item(view.rows.length > 0, { label: "Select all", image: "check", keys: "Ctrl+A", run: () => view.selectAll(true) }),
    { label: view.isTiled ? "List view" : "Grid view", image: view.isTiled ? "list" : "grid", keys: "g", run: () => view.turnView() },
    { label: "Reload", image: "again", keys: "r", run: () => view.reload() },
    null,
    ...item(!view.isSearch, { label: "More actions…", image: "more", keys: ".", run: () => view.more() }),
  ], at);
}
