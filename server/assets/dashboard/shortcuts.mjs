// What the keys do, and the sheet that says so.

import { open } from "./dialog.mjs";
import { make } from "./dom.mjs";

/** @type {[string, [string, string][]][]} */
const SHEET = [
  ["Move", [
    ["↑ ↓ ← →", "to the next entry"], ["Home  End", "to the first, the last"], ["Page Up  Page Down", "by a page"],
    ["letters", "to the entry that begins so; with Shift where the letter does something"], ["Enter", "open"], ["Backspace", "to the folder above"],
  ]],
  ["Choose", [["Space", "this one too, or no longer"], ["Shift ↑ ↓", "everything up to there"], ["Ctrl A", "all"], ["Esc", "nothing"]]],
  ["Do", [
    ["u", "upload files"], ["c", "copy the link"], ["f", "copy as Markdown, HTML …"], ["d", "download"], ["F2", "rename"], ["m", "move"], ["Del", "delete"], ["n", "new folder"], [".", "more: import, links, deleted files …"],
  ]],
  ["Find and see", [["/", "search"], ["Ctrl F", "filter this folder"], ["g", "list or tiles"], ["r", "load again"], ["?", "this help"]]],
  ["In a preview", [["← →", "the one before, the next"], ["+ − 0", "larger, smaller, whole"], ["p", "other sizes and formats"], ["Esc", "close"]]],
];

/** Shows the sheet. */
export function help() {
  open("Keys", [make("div", { class: "sheet" }, SHEET.map(([title, keys]) =>
    make("section", null, make("h3", null, title), make("dl", null, keys.map(([key, what]) => [
      make("dt", null, key.split(/ {2}/).map((one) => make("kbd", null, one))), make("dd", null, what),
    ]))))),
    make("p", { class: "faint" }, "More help: ", make("a", { href: "/-/docs", target: "_blank", rel: "noopener", "data-outside": true }, "the HTTP API"), ", and ", make("a", { href: "/-/connect", click: (/** @type {any} */ event) => event.target.closest("dialog").close() }, "how programs connect"), ".")], { class: "wide" });
}

/** Whether a key is typed into something, or something is in front of the view. @param {KeyboardEvent} event */
export function isTyped(event) {
  const target = /** @type {Element} */ (event.target);
  return event.defaultPrevented || event.isComposing || Boolean(target.closest?.("input, textarea, select, [contenteditable]"));
}
