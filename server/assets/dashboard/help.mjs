// The sheet of keyboard shortcuts.

import { open } from "./dialog.mjs";
import { make } from "./dom.mjs";

/** @type {[string, [string, string][]][]} */
const SHEET = [
  ["Navigate", [
    ["↑ ↓ ← →", "Next item"], ["Home  End", "First, last"], ["Page Up  Page Down", "One page"],
    ["letters", "Type to jump (hold Shift for letters that are shortcuts)"], ["Enter", "Open"], ["Backspace", "Parent folder"],
  ]],
  ["Select", [["Space", "Toggle selection"], ["Shift ↑ ↓", "Extend selection"], ["Ctrl A", "Select all"], ["Esc", "Clear selection"], ["Drag", "Select with a rectangle"]]],
  ["Actions", [
    ["u", "Upload files"], ["c", "Copy link"], ["f", "Copy as Markdown, HTML…"], ["d", "Download"], ["i", "Info"], ["F2", "Rename"], ["m", "Move to…"], ["Del", "Delete"], ["Shift F10", "Context menu"], ["n", "New folder"], [".", "More actions"],
  ]],
  ["Search and view", [["/", "Search"], ["Ctrl F", "Filter by name"], ["g", "List or grid view"], ["r", "Reload"], ["?", "This help"]]],
  ["Preview", [["← →", "Previous, next"], ["+ − 0", "Zoom in, out, fit"], ["p", "Transform"], ["i", "Info"], ["Esc", "Close"]]],
];

/** Shows the sheet of shortcuts. */
export function help() {
  open("Keyboard shortcuts", [make("div", { class: "sheet" }, SHEET.map(([title, keys]) =>
    make("section", null, make("h3", null, title), make("dl", null, keys.map(([key, what]) => [
      make("dt", null, key.split(/ {2}/).map((one) => make("kbd", null, one))), make("dd", null, what),
    ]))))),
    make("p", { class: "faint" }, "More help: ", make("a", { href: "/-/docs", target: "_blank", rel: "noopener", "data-outside": true }, "Documentation"), ", and ", make("a", { href: "/-/connect", click: (/** @type {any} */ event) => event.target.closest("dialog").close() }, "connecting clients"), ".")], { class: "wide" });
}
