// Keyboard shortcuts: key events that are typing, and the sheet of all shortcuts.

import { bring } from "./later.mjs";
import { complain } from "./live.mjs";

/** Shows the sheet of shortcuts. */
export const help = () => bring(() => import("./help.mjs")).then((module) => module.help(), complain);

/** Whether a key event belongs to a field. @param {KeyboardEvent} event */
export function isTyped(event) {
  const target = /** @type {Element} */ (event.target);
  return event.defaultPrevented || event.isComposing || Boolean(target.closest?.("input, textarea, select, [contenteditable]"));
}
