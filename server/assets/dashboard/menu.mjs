// A menu in front of the page: at the pointer or below a button, on a phone as a sheet at the bottom.

import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";

/** @typedef {{label: string, image: string, keys?: string, run: () => any, isDanger?: boolean}} Item */

/** Milliseconds after which typed letters start a new search. */
const TYPE_MS = 800;

/**
 * Opens a menu. A null among the items is a separator; `at` is a point of the window or the element it belongs to.
 * @param {string} label @param {(Item | null)[]} items @param {{x: number, y: number} | Element} at
 */
export function openMenu(label, items, at) {
  const entry = (/** @type {Item} */ { label: text, image, keys, run, isDanger }) => make("button", {
    type: "button", role: "menuitem", tabindex: "-1", class: isDanger ? "danger" : null,
    click: () => { dialog.close(); run(); },
    pointermove: (/** @type {any} */ event) => event.currentTarget.focus(),
  }, icon(image), make("span", null, text), keys && make("kbd", { "aria-hidden": "true" }, keys));
  // No separator at an end, or next to another.
  const shown = items.filter((item, index) => item !== null || (index > 0 && items[index - 1] !== null && items.slice(index).some(Boolean)));
  const list = make("div", { role: "menu", "aria-label": label }, shown.map((item) => (item === null ? make("hr", { role: "separator" }) : entry(item))));
  const dialog = make("dialog", { class: "menu-dialog", "aria-label": label }, list);
  const buttons = [...list.querySelectorAll("button")];
  dialog.addEventListener("close", () => dialog.remove());
  for (const type of ["click", "contextmenu"]) {
    dialog.addEventListener(type, (/** @type {Event} */ event) => {
      if (event.target === dialog) dialog.close();
      if (type === "contextmenu") event.preventDefault();
    });
  }
  let typed = "";
  let since = 0;
  dialog.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const now = buttons.indexOf(document.activeElement);
    const step = { ArrowDown: now + 1, ArrowUp: now < 0 ? -1 : now - 1, Home: 0, End: -1 }[event.key];
    if (step !== undefined) buttons.at(step % buttons.length).focus();
    else if (event.key === "Tab") dialog.close();
    else if (event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey) {
      typed = performance.now() - since < TYPE_MS ? typed + event.key.toLowerCase() : event.key.toLowerCase();
      since = performance.now();
      const order = [...buttons.slice(now + (typed.length === 1 ? 1 : 0)), ...buttons];
      order.find((button) => button.textContent.toLowerCase().startsWith(typed))?.focus();
    } else return;
    event.preventDefault();
  });
  document.body.append(dialog);
  dialog.showModal();
  place(dialog, at);
  buttons[0]?.focus({ preventScroll: true });
  return dialog;
}

/** Places a menu inside of the window; on a phone the style sheet does. @param {any} dialog @param {any} at */
function place(dialog, at) {
  if (matchMedia("(max-width: 30rem)").matches) return;
  const box = at instanceof Element ? at.getBoundingClientRect() : null;
  const { x, y, top } = box ? { x: box.right - dialog.offsetWidth, y: box.bottom + 4, top: box.top - 4 } : { ...at, top: at.y };
  const left = Math.max(8, Math.min(x, innerWidth - dialog.offsetWidth - 8));
  const isBelow = y + dialog.offsetHeight <= innerHeight - 8;
  dialog.style.left = `${left}px`;
  dialog.style.top = `${isBelow ? y : Math.max(8, top - dialog.offsetHeight)}px`;
}
