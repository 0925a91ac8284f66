// Notifications: a note at the bottom of the window, and a live region for screen readers.

import { fill, make } from "./dom.mjs";
import { explain, isGone } from "./api.mjs";
import { icon } from "./icons.mjs";

const region = make("div", { class: "unseen", role: "status", "aria-live": "polite" });
const notes = make("div", { class: "notes" });
document.body.append(region, notes);

/** Announces text to screen readers. @param {string} text */
export function say(text) {
  // A repeated text has to change to be announced.
  region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}

/**
 * Shows a note for some seconds; while the pointer or the focus is on it, it stays.
 * @param {string} text
 * @param {{label: string, run: () => any} | null} [action]
 * @param {{seconds?: number, kind?: "plain" | "bad"}} [how]
 */
export function note(text, action = null, { seconds = 6, kind = "plain" } = {}) {
  const close = () => it.remove();
  const it = make("div", { class: `note ${kind}`, role: kind === "bad" ? "alert" : null },
    kind === "bad" ? icon("warning") : null,
    make("p", null, text),
    action && make("button", { class: "link", type: "button", click: async () => { close(); await action.run(); } }, action.label),
    make("button", { class: "bare", type: "button", "aria-label": "Dismiss", click: close }, icon("close")));
  notes.append(it);
  while (notes.children.length > 4) notes.firstChild?.remove();
  if (kind === "plain") say(action ? `${text} Action available: ${action.label}.` : text);
  let left = seconds * 10;
  const timer = setInterval(() => {
    if (it.matches(":hover, :focus-within")) return;
    left -= 1;
    if (left > 0 && it.isConnected) return;
    clearInterval(timer);
    close();
  }, 100);
  return { close, text: (/** @type {string} */ words) => { if (it.isConnected) fill(/** @type {any} */ (it.querySelector("p")), words); } };
}

/** Reports an error with its advice. @param {any} error @param {string} [what] */
export function complain(error, what = "") {
  if (isGone(error)) return;
  note(what ? `${what}: ${explain(error)}` : explain(error), null, { seconds: 12, kind: "bad" });
}
