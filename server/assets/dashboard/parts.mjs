// Building blocks of the management views: pages, panels, parts that load, tables, facts.

import { query } from "./address.mjs";
import { explain, isGone } from "./api.mjs";
import { copyAndTell } from "./copy.mjs";
import { ask, field, open } from "./dialog.mjs";
import { debounced, fill, make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { amend } from "./router.mjs";
import { day, moment, number } from "./text.mjs";

/** Pause in typing after which a list is filtered. */
const PAUSE_MS = 150;
/** Entries that need no filter. */
const FEW = 10;

let count = 0;

/**
 * A view: heading, actions and panels. Its signal aborts when it closes.
 * @param {string} title @param {{about?: any, actions?: any[]}} head @param {...any} contents
 */
export function page(title, { about = null, actions = [] }, ...contents) {
  const stopped = new AbortController();
  const element = make("div", { class: "sheet-page" },
    make("header", null, make("div", null, make("h1", null, title), about && make("p", { class: "faint" }, about)), make("div", { class: "buttons" }, actions)),
    contents);
  return { element, title, stopped: stopped.signal, close: () => stopped.abort() };
}

/** A section of a page with a heading. @param {string} title @param {{about?: any, actions?: any[], class?: string}} head @param {...any} contents */
export function panel(title, { about = null, actions = [], class: className = "" }, ...contents) {
  const id = `panel-${(count += 1)}`;
  return make("section", { class: `panel ${className}`, "aria-labelledby": id },
    make("header", null, make("div", null, make("h2", { id }, title), about && make("p", { class: "faint" }, about)), make("div", { class: "buttons" }, actions)),
    contents);
}

/**
 * Contents that are loaded, and reloaded on request; a failure is displayed in their place. The focus stays.
 * @template T @param {() => Promise<T>} load @param {(data: T) => any} draw
 */
export function part(load, draw) {
  const element = make("div", { class: "part", tabindex: "-1", "aria-busy": "true" }, make("p", { class: "faint waiting" }, "Loading…"));
  let turn = 0;
  const it = {
    element,
    async load() {
      const mine = (turn += 1);
      element.setAttribute("aria-busy", "true");
      try {
        const data = await load();
        if (mine === turn) redraw(element, draw(data));
      } catch (error) {
        if (mine === turn && !isGone(error)) fill(element, failure(error, it.load));
      }
      if (mine === turn) element.removeAttribute("aria-busy");
    },
  };
  it.load();
  return it;
}

/** Replaces contents; the focused element has the focus again, by its name. @param {any} element @param {...any} contents */
export function redraw(element, ...contents) {
  const held = element.contains(document.activeElement) ? document.activeElement : null;
  const name = held?.getAttribute("data-name");
  fill(element, ...contents);
  if (!held || held === element) return;
  const again = name && [...element.querySelectorAll("[data-name]")].find((it) => it.dataset.name === name && !it.disabled);
  (again || element).focus({ preventScroll: true });
}

/** An error, with a button to try again. @param {any} error @param {() => any} again */
export const failure = (error, again) => make("div", { class: "empty" }, icon("warning", "icon large"), make("p", { role: "alert" }, explain(error)),
  make("button", { type: "button", click: again }, icon("again"), "Try again"));

/** An empty state, with what to do. @param {string} image @param {string} title @param {...any} contents */
export const nothing = (image, title, ...contents) => make("div", { class: "empty" }, icon(image, "icon large"), make("h3", null, title), contents.map((it) => (typeof it === "string" ? make("p", null, it) : it)));

/** @param {string} label @param {() => any} run @param {{image?: string, class?: string, name?: string, [more: string]: any}} [how] */
export const button = (label, run, { image = "", class: className = "", name = "", ...more } = {}) =>
  make("button", { type: "button", class: className || null, click: run, "data-name": name || label, ...more }, image && icon(image), label);

/**
 * A table; on a narrow screen each row is a block of labelled cells. Classes of columns: `number`, `act`, `wide`.
 * @param {string} label @param {[string, string?][]} columns @param {any[][]} rows cells
 */
export function table(label, columns, rows) {
  const body = make("tbody", { role: "rowgroup" });
  /** @param {any[][]} added */
  const add = (added) => body.append(...added.map((cells) => make("tr", { role: "row" }, cells.map((cell, at) => make("td", { role: "cell", class: columns[at][1], "data-label": columns[at][0] }, make("div", null, cell ?? "–"))))));
  add(rows);
  const element = make("table", { role: "table", "aria-label": label },
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, columns.map(([name, className]) =>
      make("th", { role: "columnheader", scope: "col", class: className }, className?.includes("act") ? make("span", { class: "unseen" }, name) : name)))), body);
  return { element, add };
}

/**
 * A table in pages: a button loads the next one.
 * @param {string} label @param {[string, string?][]} columns
 * @param {(cursor: string | null) => Promise<{rows: any[][], cursor: string | null}>} load @param {() => any} empty
 */
export function paged(label, columns, load, empty) {
  return part(() => load(null), (first) => {
    if (first.rows.length === 0 && first.cursor === null) return empty();
    let { cursor } = first;
    const it = table(label, columns, first.rows);
    const problem = make("p", { class: "problem", role: "alert", hidden: true });
    const more = button("Show more", async () => {
      more.disabled = true;
      problem.hidden = true;
      try {
        const next = await load(cursor);
        ({ cursor } = next);
        it.add(next.rows);
        more.hidden = cursor === null;
      } catch (error) {
        problem.textContent = explain(error);
        problem.hidden = false;
      }
      more.disabled = false;
    }, { hidden: cursor === null });
    return [it.element, problem, make("p", { class: "more" }, more)];
  });
}

/**
 * A field that filters a long list: typing reloads the list and updates the address.
 * @param {string} label @param {any} place @param {() => Promise<any>} load
 */
export function finder(label, place, load) {
  let text = (place.values.get("q") ?? "").trim();
  const line = field(label, { type: "search", value: text, maxlength: 256, spellcheck: "false", autocapitalize: "none", enterkeyhint: "search", "data-finder": true });
  const status = make("span", { class: "unseen", role: "status" });
  const element = make("div", { class: "search-row", role: "search", hidden: true }, line, status);
  const box = line.querySelector("input");
  const look = debounced(PAUSE_MS, () => {
    if (!box.isConnected || box.value.trim() === text) return;
    text = box.value.trim();
    amend(`${location.pathname}${query({ q: text })}`);
    load();
  });
  box.addEventListener("input", look);
  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") look.now();
    if (event.key !== "Escape") return;
    event.preventDefault();
    if (box.value === "") box.blur();
    box.value = "";
    look();
    look.now();
  });
  return {
    element,
    text: () => text,
    /** Announces the number of results. @param {number} found @param {boolean} [isAll] */
    tell(found, isAll = true) {
      element.hidden = text === "" && found <= FEW && !element.contains(document.activeElement);
      status.textContent = text === "" ? "" : `${number(found)}${isAll ? "" : "+"} results`;
    },
    nothing: () => nothing("search", "No results", `No name contains “${text}” and no ID starts with it.`),
  };
}

/** Names and values. @param {[string, any][]} pairs */
export const facts = (pairs) => make("dl", { class: "facts-list" }, pairs.map(([name, value]) => make("div", null, make("dt", null, name), make("dd", null, value ?? "–"))));

/** Key figures: name, value, and a note. @param {[string, any, any?][]} all */
export const glances = (all) => make("dl", { class: "glances" }, all.map(([name, value, word]) => make("div", null, make("dt", null, name), make("dd", null, make("b", null, value), word && make("small", null, word)))));

/** @param {string} text @param {"" | "good" | "bad" | "warn"} [kind] */
export const badge = (text, kind = "") => make("span", { class: `badge ${kind}` }, text);

/** A time, as a day; the moment is its title. @param {string | null | undefined} iso @param {string} [never] */
export const when = (iso, never = "Never") => (iso ? make("time", { datetime: iso, title: moment(iso) }, day(iso)) : never);

/** Text with a copy button. @param {string} title @param {string} text @param {...any} actions next to the copy button */
export function snippet(title, text, ...actions) {
  return make("section", { class: "snippet" },
    make("header", null, make("h3", null, title), make("span", { class: "buttons" }, actions, make("button", { type: "button", "aria-label": `Copy: ${title}`, click: () => copyAndTell(text, `${title} copied`) }, icon("copy"), "Copy"))),
    make("pre", { tabindex: "0", role: "group", "aria-label": title }, text));
}

/** A command line with a copy button. @param {string} text */
export const command = (text) => make("p", { class: "command" }, make("span", { class: "faint" }, "On the server: "), make("code", null, text),
  make("button", { type: "button", class: "bare", title: "Copy", "aria-label": `Copy: ${text}`, click: () => copyAndTell(text, "Command copied") }, icon("copy")));

/** A labelled checkbox. @param {string} label @param {Record<string, any>} attributes @param {string} [hint] */
export function tick(label, attributes, hint) {
  const id = `tick-${(count += 1)}`;
  return make("p", { class: "tick-field" }, make("input", { type: "checkbox", id, "aria-describedby": hint ? `${id}-hint` : null, ...attributes }),
    make("label", { for: id }, label), hint && make("small", { id: `${id}-hint` }, hint));
}

/** A labelled text area. @param {string} label @param {Record<string, any>} attributes @param {string} [hint] */
export function lines(label, { value = "", ...attributes }, hint) {
  const id = `lines-${(count += 1)}`;
  const box = make("textarea", { id, rows: 3, spellcheck: "false", autocapitalize: "none", "aria-describedby": hint ? `${id}-hint` : null, ...attributes });
  box.value = value;
  return make("p", { class: "field" }, make("label", { for: id }, label), box, hint && make("small", { id: `${id}-hint` }, hint));
}

/** The non-empty lines of a text. @param {string} text */
export const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** Asks to type a name before an action that cannot be undone. @param {string} title @param {any} about @param {string} name @param {string} label @param {() => Promise<any>} work */
export const askTyped = (title, about, name, label, work) => ask(title, [make("p", null, about),
  field(`Type “${name}” to confirm`, { name: "typed", required: true, spellcheck: "false", autocapitalize: "none" })], label, async ({ typed }) => {
  if (typed !== name) throw new Error(`The name doesn't match. Type “${name}” to confirm.`);
  return work();
}, { danger: true });

/** Asks before an action. @param {string} title @param {any} about @param {string} label @param {() => Promise<any>} work */
export const askFirst = (title, about, label, work) => ask(title, [make("p", null, about)], label, work, { danger: true });

/** Shows a secret once. @param {string} title @param {string} about @param {...any} contents */
export function tellOnce(title, about, ...contents) {
  const dialog = open(title, [make("div", { class: "dialog-body" }, make("p", { class: "once" }, icon("warning"), about), contents, make("p", { class: "buttons" }, make("button", { type: "button", class: "primary", click: () => dialog.close() }, "I have saved it")))], { class: "wide" });
  return dialog;
}
