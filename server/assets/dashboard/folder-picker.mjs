// Picks a folder of a bucket: a tree that loads as it is opened, a filter over all folders, recent targets, and a new
// folder inline. A new folder exists with its first file; until then it is only a name here.

import { folderOf, nameOf } from "./address.mjs";
import { explain, isGone, listFolder, search } from "./api.mjs";
import { ask, field } from "./dialog.mjs";
import { debounced, fill, make, preferences } from "./dom.mjs";
import { icon } from "./icons.mjs";

/** @typedef {{key: string, isOpen: boolean, isLoaded: boolean, children: Node[], note?: string}} Node */

const RECENT_MAX = 5;
const MATCHES_MAX = 50;
const PAUSE_MS = 150;

/** Recent targets of a bucket. @param {string} bucket @returns {string[]} */
const recent = (bucket) => preferences.get(`targets-${bucket}`, []);

/** @param {string} bucket @param {string} key */
function remember(bucket, key) {
  preferences.set(`targets-${bucket}`, [key, ...recent(bucket).filter((it) => it !== key)].slice(0, RECENT_MAX));
}

/** A path as a folder key, or null if no folder can have it. @param {string} text */
export function folderKey(text) {
  const clean = text.trim().replace(/^\/+|\/+$/g, "");
  if (clean === "" || clean.split("/").some((part) => part === "" || part === "." || part === "..")) return null;
  return `${clean}/`;
}

/** The subfolders of a folder. @param {string} bucket @param {string} prefix @param {AbortSignal} signal */
async function subfolders(bucket, prefix, signal) {
  const keys = [];
  let cursor = null;
  do {
    // Folders come first: a page with files has the last of them.
    const page = await listFolder(bucket, prefix, cursor, signal);
    keys.push(...page.CommonPrefixes.map((/** @type {any} */ it) => it.Prefix));
    cursor = page.Contents.length === 0 ? page.NextContinuationToken : null;
  } while (cursor);
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  return keys.sort((one, other) => collator.compare(one, other));
}

/**
 * Asks for a folder; `done` runs with its key when the dialog has closed.
 * @param {{bucket: string, folder: string, title: string, label: string, refused: (key: string) => string | null, done: (key: string) => any}} options
 */
export function pickFolder({ bucket, folder, title, label, refused, done }) {
  const stopped = new AbortController();
  const node = (/** @type {string} */ key) => /** @type {Node} */ ({ key, isOpen: false, isLoaded: false, children: [] });
  const root = node("");
  /** @type {Node[] | null} */
  let matches = null;
  let selected = folder;
  const filter = field("Filter or path", { name: "filter", type: "search", maxlength: 1024, spellcheck: "false", autocapitalize: "none", placeholder: "2026/summer/" });
  const box = filter.querySelector("input");
  const list = make("div", { class: "tree", role: "tree", "aria-label": "Folders" });
  const target = make("output", { class: "faint" });
  const created = make("p", { class: "new-folder", hidden: true });
  const before = recent(bucket).filter((key) => refused(key) === null);
  const chips = before.length > 0 && make("p", { class: "recent" }, make("span", { class: "faint" }, "Recent"), before.map((key) =>
    make("button", { type: "button", class: "chip", click: () => { box.value = ""; matches = null; select(key); } }, key === "" ? bucket : key)));

  const row = (/** @type {Node} */ it, /** @type {number} */ level) => {
    const why = refused(it.key);
    const element = make("div", {
      role: "treeitem", class: "branch", tabindex: it.key === selected ? "0" : "-1", "data-key": it.key, "aria-level": level + 1,
      "aria-selected": String(it.key === selected), "aria-disabled": why === null ? null : "true", title: why,
      "aria-expanded": matches || (it.isLoaded && it.children.length === 0) ? null : String(it.isOpen),
      click: (/** @type {any} */ event) => (event.target.closest(".turn") ? toggle(it) : select(it.key, true)),
      dblclick: () => toggle(it),
    }, make("span", { class: "turn", "aria-hidden": "true" }, icon(it.isOpen ? "down" : "right")), icon(it.key === "" ? "bucket" : "folder"),
    make("span", null, it.key === "" ? bucket : matches ? it.key : nameOf(it.key)), it.note && make("small", null, it.note));
    element.style.setProperty("--level", String(level));
    return element;
  };
  /** @type {(it: Node, level?: number) => [Node, number][]} */
  const visible = (it, level = 0) => /** @type {[Node, number][]} */ ([[it, level], ...(it.isOpen ? it.children.flatMap((child) => visible(child, level + 1)) : [])]);
  /** @type {() => [Node, number][]} */
  const shown = () => (matches ? matches.map((it) => /** @type {[Node, number]} */ ([it, 0])) : visible(root));
  const draw = () => {
    const hadFocus = list.contains(document.activeElement);
    const rows = shown().map(([it, level]) => row(it, level));
    fill(list, rows.length > 0 ? rows : make("p", { class: "faint" }, "No matching folder"));
    if (rows.length > 0 && !rows.some((it) => it.tabIndex === 0)) rows[0].tabIndex = 0;
    const now = list.querySelector("[tabindex='0']");
    now?.scrollIntoView?.({ block: "nearest" });
    if (hadFocus) now?.focus({ preventScroll: true });
    const why = refused(selected);
    target.textContent = why ?? `Destination: ${bucket}/${selected}`;
  };
  const select = (/** @type {string} */ key, isFocused = false) => {
    selected = key;
    if (isFocused) list.querySelector("[tabindex='0']")?.focus();
    draw();
  };
  const load = async (/** @type {Node} */ it) => {
    if (it.isLoaded) return;
    const found = await subfolders(bucket, it.key, stopped.signal);
    const own = it.children;
    it.children = [...own, ...found.filter((key) => !own.some((child) => child.key === key)).map(node)];
    it.isLoaded = true;
  };
  const toggle = async (/** @type {Node} */ it, isOpen = !it.isOpen) => {
    if (matches) return;
    try {
      if (isOpen) await load(it);
      it.isOpen = isOpen && it.children.length > 0;
      draw();
    } catch (error) {
      if (!isGone(error)) target.textContent = explain(error);
    }
  };
  /** Opens the tree down to a folder. @param {string} key */
  const reveal = async (key) => {
    let at = root;
    await toggle(at, true);
    for (const part of key.split("/").slice(0, -1)) {
      const next = at.children.find((child) => nameOf(child.key) === part);
      if (!next) return;
      at = next;
      await toggle(at, true);
    }
  };
  let looking = Promise.resolve();
  const find = async () => {
    const text = box.value.trim();
    if (text === "") {
      matches = null;
      return draw();
    }
    try {
      const found = await search(bucket, { q: text.replaceAll("/", " "), limit: MATCHES_MAX }, stopped.signal);
      if (text !== box.value.trim()) return;
      const keys = found.hits.filter((/** @type {any} */ hit) => hit.type === "folder").map((/** @type {any} */ hit) => hit.key);
      const own = folderKey(text);
      const typed = own !== null && !keys.includes(own) ? [{ ...node(own), isLoaded: true, note: "new folder" }] : [];
      const hits = keys.map((/** @type {string} */ key) => ({ ...node(key), isLoaded: true }));
      // A path is meant as it is, a word as a part of a name.
      matches = text.includes("/") ? [...typed, ...hits] : [...hits, ...typed];
      if (own !== null && keys.includes(own)) selected = own;
      else selected = (matches ?? [])[0]?.key ?? selected;
      draw();
    } catch (error) {
      if (!isGone(error)) target.textContent = explain(error);
    }
  };
  const look = debounced(PAUSE_MS, () => { looking = find(); });
  box.addEventListener("input", look);
  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      look.now();
      list.querySelector("[tabindex='0']")?.focus();
    }
  });
  list.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const all = shown();
    const at = all.findIndex(([it]) => it.key === selected);
    const [now, level] = all[at] ?? all[0] ?? [];
    if (!now) return;
    const to = (/** @type {number} */ index) => select(all[Math.max(0, Math.min(all.length - 1, index))][0].key, true);
    /** @type {Record<string, () => any>} */
    const keys = {
      ArrowDown: () => to(at + 1), ArrowUp: () => (at <= 0 ? box.focus() : to(at - 1)), Home: () => to(0), End: () => to(all.length - 1),
      ArrowRight: () => (now.isOpen ? to(at + 1) : toggle(now, true)),
      ArrowLeft: () => (now.isOpen ? toggle(now, false) : level > 0 ? select(folderOf(now.key), true) : null),
      Enter: () => dialog.querySelector("form").requestSubmit(),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  const name = make("input", {
    "aria-label": "Name of the new folder", maxlength: 255, placeholder: "New folder", spellcheck: "false",
    keydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Enter") return add();
      created.hidden = true;
      more.focus();
    },
  });
  const add = async () => {
    const key = folderKey(name.value);
    if (key === null) return name.focus();
    const parent = refused(selected) === null ? selected : folder;
    await reveal(parent);
    const under = visible(root).find(([it]) => it.key === parent)?.[0] ?? root;
    const full = parent + key;
    if (!under.children.some((child) => child.key === full)) under.children.unshift({ ...node(full), isLoaded: true, note: "new" });
    under.isOpen = true;
    matches = null;
    box.value = name.value = "";
    created.hidden = true;
    select(full);
    list.querySelector("[tabindex='0']")?.focus();
  };
  fill(created, name, make("button", { type: "button", click: add }, "Add"));
  const more = make("button", { type: "button", class: "link", click: () => { created.hidden = false; name.focus(); } }, "New folder");
  const dialog = ask(title, [make("div", { class: "picker" }, filter, chips, list, created, make("p", { class: "picked" }, target, more))], label, async () => {
    look.now();
    await looking;
    const why = refused(selected);
    if (why !== null) throw new Error(why);
    remember(bucket, selected);
    return () => done(selected);
  });
  dialog.addEventListener("close", () => stopped.abort());
  draw();
  reveal(folder);
  return dialog;
}
