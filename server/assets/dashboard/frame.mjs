// The frame of every view: navigation, search, account, and the panel of uploads.

import { filesAddress, query, searchAddress } from "./address.mjs";
import { buckets, signOut } from "./api.mjs";
import { debounced, fill, make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { complain } from "./live.mjs";
import { go, turn } from "./router.mjs";
import { help, isTyped } from "./shortcuts.mjs";
import { number } from "./text.mjs";
import { isDark, turnOver } from "./theme.mjs";
import { changes, panel } from "./uploads.mjs";

/** Pause in typing after which a search starts. */
const PAUSE_MS = 80;
/** @param {string} text */
const searchAllAddress = (text) => `/-/search${query({ q: text })}`;

/** Views of the management: address, icon, name. @type {[string, string, string][]} */
const PLACES = [["/-/usage", "chart", "Usage"], ["/-/keys", "key", "API keys"], ["/-/connect", "plug", "Connect"], ["/-/organisations", "people", "Organisations"], ["/-/audit", "log", "Audit log"]];
/** Views for operators. @type {[string, string, string][]} */
const OPERATED = [["/-/accounts", "person", "Accounts"], ["/-/storage", "disk", "Storage"], ["/-/server", "sliders", "Server settings"]];
/** Views of the bucket that is shown. @type {[string, string][]} */
const WITHIN = [["deleted", "Deleted files"], ["links", "Links"], ["webhooks", "Webhooks"], ["usage", "Usage"], ["settings", "Settings"]];

export class Frame {
  /** @param {any} account @param {() => void} left called after signing out */
  constructor(account, left) {
    this.account = account;
    this.left = left;
    const press = (/** @type {string} */ label, /** @type {string} */ image, /** @type {() => any} */ run, extra = {}) =>
      make("button", { type: "button", class: "bare", title: label, "aria-label": label, click: run, ...extra }, icon(image));
    this.menu = press("Menu", "menu", () => this.turnMenu(), { class: "bare menu", "aria-expanded": "false", "aria-controls": "side" });
    this.list = make("ul", { class: "buckets" });
    this.theme = press(isDark() ? "Light" : "Dark", isDark() ? "sun" : "moon", () => {
      turnOver();
      fill(this.theme, icon(isDark() ? "sun" : "moon"));
      this.theme.title = isDark() ? "Light" : "Dark";
      this.theme.setAttribute("aria-label", this.theme.title);
    });
    const places = (/** @type {[string, string, string][]} */ all) => make("ul", null, all.map(([href, image, name]) => make("li", null, make("a", { href }, icon(image), name))));
    this.who = make("a", { class: "who", href: "/-/account", title: "Your account" }, account?.name ?? "");
    this.side = make("nav", { class: "side", id: "side", "aria-label": "Main" },
      make("a", { class: "logo", href: "/-/", "aria-label": "trug, home" }, icon("trug", "icon large"), "trug"),
      places([["/-/", "trug", "Home"]]),
      make("h2", null, "Buckets"), this.list,
      make("h2", null, "Manage"), places(PLACES),
      account?.role === "operator" && [make("h2", null, "Server"), places(OPERATED)],
      make("footer", null, this.who,
        this.theme, press("Keyboard shortcuts (?)", "help", help),
        press("Sign out", "out", async () => {
          try {
            await signOut();
            left();
          } catch (error) {
            complain(error, "Sign-out failed");
          }
        })));
    this.box = make("input", { type: "search", placeholder: "Search", "aria-label": "Search", autocomplete: "off", spellcheck: "false", enterkeyhint: "search" });
    const search = debounced(PAUSE_MS, () => this.search());
    this.box.addEventListener("input", search);
    this.box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const isShown = this.isSearching && this.browser?.text === this.box.value.trim();
      if (event.key === "Enter" && !isShown) {
        search.cancel();
        this.search();
      } else if (["ArrowDown", "Escape", "Enter"].includes(event.key)) this.browser?.boxKey(event);
      if (event.key === "Escape") {
        search.cancel();
        this.box.value = "";
        this.box.blur();
      }
    });
    this.searchField = make("div", { class: "search", role: "search" }, icon("search"), this.box, make("kbd", { "aria-hidden": "true" }, "/"));
    this.main = make("main", { id: "main", tabindex: "-1" });
    this.element = make("div", { class: "frame" },
      make("a", { class: "skip", href: "#main", "data-outside": true, click: (/** @type {Event} */ event) => { event.preventDefault(); this.main.focus(); } }, "Skip to content"),
      this.side, make("div", { class: "veil", click: () => this.turnMenu(false) }),
      make("div", { class: "page" }, make("header", { class: "bar" }, this.menu, this.searchField), this.main), panel);
    this.side.addEventListener("click", (/** @type {any} */ event) => { if (event.target.closest("a")) this.turnMenu(false); });
    this.onKey = (/** @type {KeyboardEvent} */ event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
    changes.addEventListener("stored", debounced(1000, () => this.load()));
    this.load();
  }

  /** Shows a view. @param {Element} view @param {string} bucket the bucket that it belongs to */
  show(view, bucket) {
    this.bucket = bucket;
    fill(this.main, view);
    this.markBucket();
  }

  /** Loads the buckets; `loaded` resolves with them. */
  load() {
    this.loaded = buckets().then((all) => {
      fill(this.list, all.map((bucket) => make("li", null, make("a", { href: filesAddress(bucket.bucketName), "data-bucket": bucket.bucketName },
        icon(bucket.access === "private" ? "lock" : "bucket"), make("span", { class: "name" }, bucket.bucketName),
        make("small", { title: `${number(bucket.objectCount)} files` }, short(bucket.objectCount), make("span", { class: "unseen" }, " files"))))));
      this.list.classList.toggle("none", all.length === 0);
      this.list.style.setProperty("--rows", String(Math.min(all.length, 3)));
      this.markBucket();
      return all;
    });
    // The home page reports the error itself.
    this.loaded.catch((error) => { if (location.pathname !== "/-/") complain(error, "Couldn't load buckets"); });
  }

  /** Marks the current view, and shows the views of the current bucket. */
  markBucket() {
    this.list.querySelector("ul")?.remove();
    const { pathname } = location;
    const view = pathname.split("/")[2] ?? "";
    const isFiles = ["files", "search", "playground"].includes(view);
    for (const link of this.side.querySelectorAll("a[href]:not(.logo)")) {
      const name = link.dataset.bucket;
      const href = link.getAttribute("href") ?? "";
      const is = name === undefined ? !this.bucket && (href === pathname || (href !== "/-/" && pathname.startsWith(`${href}/`))) : name === this.bucket;
      if (is) link.setAttribute("aria-current", name === undefined || isFiles ? "page" : "true");
      else link.removeAttribute("aria-current");
      if (!is || name === undefined) continue;
      link.parentElement.append(make("ul", null, WITHIN.map(([within, label]) => make("li", null,
        make("a", { href: `/-/${within}/${encodeURIComponent(name)}${within === "deleted" || within === "links" ? "/" : ""}`, "aria-current": view === within ? "page" : null }, label)))));
      // The list of buckets may be scrolled.
      link.parentElement.scrollIntoView({ block: "nearest" });
    }
  }

  /** Shows another name of the account. @param {string} name */
  rename(name) {
    this.account = { ...this.account, name };
    fill(this.who, name);
  }

  /** Sets what the search field searches; without a bucket it is hidden. @param {string} bucket @param {string} [folder] @param {string} [text] @param {any} [browser] */
  searchIn(bucket, folder = "", text = "", browser = null) {
    this.searchField.hidden = bucket === "";
    this.target = bucket;
    this.folder = folder;
    this.isSearching = text !== "";
    this.browser = browser;
    this.box.placeholder = `Search ${folder ? folder.slice(0, -1) : bucket}`;
    this.box.setAttribute("aria-label", this.box.placeholder);
    if (document.activeElement !== this.box) this.box.value = text;
  }

  /** Lets the search field search all buckets. @param {string} text */
  searchAll(text) {
    this.searchIn("", "", text);
    this.isSearching = location.pathname === "/-/search";
    this.searchField.hidden = false;
    this.box.placeholder = "Search all buckets";
    this.box.setAttribute("aria-label", this.box.placeholder);
  }

  search() {
    const text = this.box.value.trim();
    if (this.target === "") return this.isSearching ? turn(searchAllAddress(text)) : text !== "" && go(searchAllAddress(text));
    if (text === "") {
      if (this.isSearching) turn(filesAddress(this.target ?? "", this.folder));
      return;
    }
    const address = searchAddress(this.target ?? "", { q: text, parent: this.folder });
    if (this.isSearching) turn(address);
    else go(address);
  }

  focusSearch() {
    if (this.searchField.hidden) return;
    this.box.focus();
    this.box.select();
  }

  /** @param {boolean} [isOpen] */
  turnMenu(isOpen = !this.element.classList.contains("with-menu")) {
    this.element.classList.toggle("with-menu", isOpen);
    this.menu.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.side.querySelector("a")?.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Escape" && this.element.classList.contains("with-menu")) {
      this.turnMenu(false);
      this.menu.focus();
      return;
    }
    if (isTyped(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "?") help();
    else if (event.key === "/" && !this.searchField.hidden) this.focusSearch();
    else if (event.key === "/") this.main.querySelector("[data-finder]")?.focus();
    else return;
    event.preventDefault();
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
    this.element.remove();
  }
}

/** A short number, such as 18k. @param {number} value */
function short(value) {
  if (value < 10_000) return number(value);
  return value < 1_000_000 ? `${Math.round(value / 1000)}k` : `${(value / 1_000_000).toFixed(1)}M`;
}
