// Modal dialogs and forms. The native dialog element traps the focus and restores it.

import { explain } from "./api.mjs";
import { make } from "./dom.mjs";
import { icon } from "./icons.mjs";

let count = 0;

/**
 * Opens a dialog with these contents; closing removes it.
 * @param {string} title @param {any[]} contents @param {{class?: string, closed?: () => void}} [options]
 */
export function open(title, contents, { class: className = "", closed } = {}) {
  const id = `dialog-${(count += 1)}`;
  const close = () => dialog.close();
  const dialog = make("dialog", { class: className, "aria-labelledby": id },
    make("header", null,
      make("h2", { id }, title),
      make("button", { class: "bare", type: "button", "aria-label": "Close", click: close }, icon("close"))),
    ...contents);
  dialog.addEventListener("click", (/** @type {Event} */ event) => { if (event.target === dialog) close(); });
  dialog.addEventListener("close", () => { dialog.remove(); closed?.(); });
  // If the session ended during the requests before, the dialog would cover the sign-in page.
  if (!document.querySelector("main.entrance")) {
    document.body.append(dialog);
    dialog.showModal();
  }
  return dialog;
}

/**
 * A labelled input of a form.
 * @param {string} label @param {Record<string, any>} attributes @param {string} [hint]
 */
export function field(label, attributes, hint) {
  const id = `field-${(count += 1)}`;
  const hintId = hint ? `${id}-hint` : null;
  return make("p", { class: "field" },
    make("label", { for: id }, label),
    make("input", { id, autocomplete: "off", "aria-describedby": hintId, ...attributes }),
    hint ? make("small", { id: hintId }, hint) : null);
}

/** The field for a new bucket's name: input becomes lower case, and spaces become dashes. @param {string} label @param {string} [value] */
export const bucketNameField = (label, value = "") => field(label, {
  name: "bucketName", required: true, minlength: 3, maxlength: 63, value, pattern: "[a-z0-9][a-z0-9._\\-]*", autocapitalize: "none", spellcheck: "false",
  input: (/** @type {any} */ { target }) => {
    const at = target.selectionStart;
    target.value = target.value.toLowerCase().replaceAll(" ", "-");
    target.setSelectionRange(at, at);
  },
}, "3–63 characters: a–z, 0–9, “-”, “.” and “_”. Part of every file's URL.");

/** A labelled choice. @param {string} label @param {Record<string, any>} attributes @param {[string, string][]} options @param {string} [chosen] */
export function choice(label, attributes, options, chosen) {
  const id = `field-${(count += 1)}`;
  return make("p", { class: "field" },
    make("label", { for: id }, label),
    make("select", { id, ...attributes },
      options.map(([value, text]) => make("option", { value, selected: value === chosen }, text))));
}

/**
 * A form that runs `work` on submit, and shows an error at the field that it concerns.
 * @param {any[]} contents @param {string} label of its button
 * @param {(values: Record<string, string>) => Promise<void>} work @param {{danger?: boolean, extra?: any[]}} [options]
 */
export function form(contents, label, work, { danger = false, extra = [] } = {}) {
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const button = make("button", { class: danger ? "danger" : "primary", type: "submit" }, label);
  const it = make("form", { novalidate: false }, ...contents, problem, make("p", { class: "buttons" }, ...extra, button));
  it.addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    problem.hidden = true;
    it.querySelector("[aria-invalid]")?.removeAttribute("aria-invalid");
    button.disabled = true;
    try {
      await work(/** @type {any} */ (Object.fromEntries(new FormData(it))));
    } catch (error) {
      problem.textContent = explain(error);
      problem.hidden = false;
      // At the field that the server names, otherwise above the buttons.
      const input = it.elements.namedItem(/** @type {any} */ (error)?.body?.parameter ?? "");
      const row = input?.closest?.(".field");
      if (row) {
        row.after(problem);
        input.setAttribute("aria-invalid", "true");
        input.focus();
      } else {
        it.lastElementChild.before(problem);
      }
      // In a long form the error may be out of view.
      problem.scrollIntoView({ block: "nearest" });
    } finally {
      button.disabled = false;
    }
  });
  return it;
}

/**
 * Opens a dialog with a form. `work` runs while the dialog is open; a function that it resolves with runs after closing.
 * @param {string} title @param {any[]} contents @param {string} label
 * @param {(values: Record<string, string>) => Promise<void | (() => any)>} work @param {{danger?: boolean}} [options]
 */
export function ask(title, contents, label, work, options) {
  const cancel = make("button", { type: "button", click: () => dialog.close() }, "Cancel");
  const body = form(contents, label, async (values) => {
    const after = await work(values);
    dialog.close();
    after?.();
  }, { ...options, extra: [cancel] });
  const dialog = open(title, [body]);
  const first = dialog.querySelector("form input, form select, form textarea");
  first?.focus();
  return dialog;
}
