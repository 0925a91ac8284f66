// The files of a bucket: the entries of a folder or the results of a search, as a list or as a grid, and every action on
// them. The address holds the bucket, the folder, the open file, the order, the filter and the selection.

import { copyLinks } from "./copy.mjs";
import { download, named, newFolder, remove, rename } from "./actions.mjs";
import { filesAddress, folderOf, fileAddress, nameOf, playgroundAddress, searchAddress } from "./address.mjs";
import { bucketAndScopes, explain, isGone } from "./api.mjs";
import { chosen } from "./collect.mjs";
import { debounced, fill, make, preferences } from "./dom.mjs";
import { Gestures } from "./gestures.mjs";
import { icon } from "./icons.mjs";
import { bring } from "./later.mjs";
import { Listing } from "./listing.mjs";
import { complain, say } from "./live.mjs";
import { columnOf, filtered } from "./order.mjs";
import { Preview } from "./preview.mjs";
import { amend, beforeLeaving, go } from "./router.mjs";
import { counted, lines, loadThumbnails, tiles } from "./rows.mjs";
import { Hits } from "./search.mjs";
import { Selection } from "./selection.mjs";
import { help, isTyped } from "./shortcuts.mjs";
import { bytes, count, number } from "./text.mjs";
import { changes, paste, upload, uploadDropped } from "./uploads.mjs";
import { Viewport } from "./viewport.mjs";

/** Names of the selection that the address holds at most. */
const NAMES_MAX = 20;
/** Pause in scrolling after which thumbnails load. */
const PAUSE_MS = 90;

/** The folder that was left for its parent, where it becomes the active row. */
let cameFrom = "";

export class Browser {
  /** @param {ReturnType<typeof import("./address.mjs").read>} place @param {any} frame */
  constructor(place, frame) {
    this.frame = frame;
    this.bucket = place.bucket;
    this.isSearch = place.view === "search";
    this.folder = this.isSearch ? place.values.get("parent") ?? "" : place.key.slice(0, place.key.lastIndexOf("/") + 1);
    this.text = place.values.get("q") ?? "";
    this.order = place.values.get("sort") ?? "";
    this.filter = place.values.get("filter") ?? "";
    this.isTiled = (place.values.get("view") ?? preferences.get("view", "list")) === "tiles";
    this.selection = new Selection();
    /** @type {string[] | null} what the account may do in the bucket; null until it is known */
    this.scopes = null;
    this.toSelect = place.values.getAll("selected");
    /** @type {Viewport} */
    this.list = /** @type {any} */ (null);
    /** @type {any} */
    this.source = null;
    /** @type {any[]} */
    this.rows = [];
    /** @type {Preview | null} */
    this.preview = null;
    /** The shape of the selection that the bar was built for. */
    this.barFor = "";
    this.typed = "";
    this.forget = debounced(800, () => { this.typed = ""; });
    this.loadPictures = debounced(PAUSE_MS, () => loadThumbnails(this));
    this.write = debounced(200, () => this.writeAddress());
    // The history has the latest state of this view.
    this.stayed = beforeLeaving(() => this.write.now());
    this.build();
    this.load();
    this.onKey = (/** @type {KeyboardEvent} */ event) => this.key(event);
    this.onPaste = (/** @type {ClipboardEvent} */ event) => { if (!isTyped(/** @type {any} */ (event))) paste(event, this.bucket, this.folder); };
    this.onStored = (/** @type {any} */ event) => this.stored(event.detail);
    document.addEventListener("keydown", this.onKey);
    document.addEventListener("paste", this.onPaste);
    changes.addEventListener("stored", this.onStored);
    this.showOpen(place);
    bucketAndScopes(this.bucket).then(({ bucket, scopes }) => {
      this.facts = bucket;
      this.scopes = scopes ?? null;
      this.showRights();
      this.source.counted?.(bucket.objectCount);
    }, () => {});
  }

  /** Shows an address of this view; false if it belongs to another view. @param {ReturnType<typeof import("./address.mjs").read>} place */
  follow(place) {
    if (place.bucket !== this.bucket || !["files", "search"].includes(place.view)) return false;
    if ((place.view === "search") !== this.isSearch) return false;
    const folder = this.isSearch ? place.values.get("parent") ?? "" : place.key.slice(0, place.key.lastIndexOf("/") + 1);
    if (folder !== this.folder && !this.isSearch) return false;
    if (this.isSearch && ((place.values.get("q") ?? "") !== this.text || folder !== this.folder)) {
      this.text = place.values.get("q") ?? "";
      this.folder = folder;
      this.load();
      this.crumbs();
      this.frame.searchIn(this.bucket, this.folder, this.text, this);
    }
    this.showOpen(place);
    return true;
  }

  build() {
    const head = (/** @type {string} */ order, /** @type {string} */ label) => make("span", { class: order, role: "columnheader", "data-order": order },
      make("button", { type: "button", click: () => this.sortBy(order) }, label));
    this.allBox = make("button", { type: "button", role: "checkbox", "aria-checked": "false", "aria-label": "Select all", title: "Select all (Ctrl+A)", click: () => this.selectAll() });
    this.header = make("div", { class: "head", role: "row", "aria-rowindex": 1 },
      make("span", { class: "tick", role: "columnheader" }, this.allBox),
      head("name", "Name"), head("type", "Type"), head("size", "Size"), head("time", "Modified"));
    this.list = new Viewport("Files", this.isTiled ? tiles(this) : lines(this), this.header);
    this.list.seen = (_first, last) => {
      this.source?.want(last);
      if (this.isTiled) this.loadPictures();
    };
    const press = (/** @type {string} */ label, /** @type {string} */ image, /** @type {() => any} */ run, extra = {}) =>
      make("button", { type: "button", class: "bare", title: label, "aria-label": label, click: run, ...extra }, icon(image));
    this.trail = make("nav", { class: "crumbs", "aria-label": "Folders" });
    this.filterBox = make("input", {
      type: "search", class: "filter", placeholder: "Filter", "aria-label": "Filter by name", value: this.filter, autocomplete: "off", spellcheck: "false",
      input: () => { this.filter = this.filterBox.value; this.arrange(); this.write(); },
      keydown: (/** @type {KeyboardEvent} */ event) => this.boxKey(event),
    });
    this.viewButton = press("List or grid view (g)", this.isTiled ? "list" : "grid", () => this.turnView());
    this.picker = make("input", { type: "file", multiple: true, hidden: true, class: "pick-files", change: () => this.picked(this.picker) });
    this.folderPicker = make("input", { type: "file", webkitdirectory: true, hidden: true, class: "pick-folder", change: () => this.picked(this.folderPicker) });
    this.tools = make("div", { class: "tools" }, this.filterBox,
      press("New folder (n)", "newFolder", () => this.newFolder(), { class: "bare writes" }),
      press("Upload folder", "folderUp", () => this.folderPicker.click(), { class: "bare writes" }),
      press("More actions (.)", "more", () => this.more()),
      this.viewButton,
      make("button", { type: "button", class: "primary", click: () => this.picker.click() }, icon("upload"), make("span", null, "Upload")),
      this.picker, this.folderPicker);
    this.status = make("p", { class: "status faint" });
    this.empty = make("div", { class: "empty", hidden: true });
    this.bar = make("div", { class: "selection-bar", role: "toolbar", "aria-label": "Selected files", hidden: true });
    this.shade = make("div", { class: "shade", hidden: true }, icon("upload"), make("p"));
    this.element = make("div", { class: "browser" },
      make("div", { class: "top-row" }, this.trail, this.tools), this.list.element, this.empty, this.status, this.bar, this.shade);
    this.crumbs();
    this.listen();
    this.frame.searchIn(this.bucket, this.folder, this.isSearch ? this.text : "", this);
  }

  crumbs() {
    const parts = this.folder.split("/").slice(0, -1);
    const links = [make("a", { href: filesAddress(this.bucket), "data-folder": "", "aria-current": !this.isSearch && parts.length === 0 ? "page" : null }, this.bucket)];
    parts.forEach((part, index) => {
      const key = `${parts.slice(0, index + 1).join("/")}/`;
      links.push(make("a", { href: filesAddress(this.bucket, key), "data-folder": key, "aria-current": !this.isSearch && index === parts.length - 1 ? "page" : null }, part));
    });
    const chips = !this.isSearch ? null : [
      make("span", { class: "found" }, `“${this.text}”`),
      this.folder !== "" && make("button", { type: "button", class: "chip", click: () => go(searchAddress(this.bucket, { q: this.text })) }, `in ${this.folder}`, icon("close")),
    ];
    fill(this.trail, links.map((link, index) => [index > 0 ? make("span", { class: "slash", "aria-hidden": "true" }, "/") : null, link]), chips);
    this.tools.classList.toggle("searching", this.isSearch);
    document.title = `${this.isSearch ? `${this.text} – ` : ""}${parts.at(-1) ?? this.bucket} – trug`;
  }

  listen() {
    const list = this.list;
    this.gestures = new Gestures(this);
    list.element.addEventListener("contextmenu", (/** @type {any} */ event) => this.contextMenu(event));
    this.element.addEventListener("dragenter", (/** @type {DragEvent} */ event) => this.drag(event));
    this.element.addEventListener("dragover", (/** @type {DragEvent} */ event) => this.drag(event));
    this.element.addEventListener("dragleave", (/** @type {DragEvent} */ event) => {
      if (!this.element.contains(/** @type {Node | null} */ (event.relatedTarget))) this.shade.hidden = true;
    });
    this.element.addEventListener("drop", (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      this.shade.hidden = true;
      if (!event.dataTransfer) return;
      const index = list.indexOf(event);
      const onto = this.rows[index]?.isFolder ? this.rows[index].key : this.folder;
      uploadDropped(event.dataTransfer, this.bucket, onto).catch(complain);
    });
  }

  /** @param {DragEvent} event */
  drag(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    const text = `Drop to upload to ${this.bucket}/${this.folder}`;
    const label = this.shade.lastChild;
    if (label.textContent !== text) label.textContent = text;
    this.shade.hidden = false;
  }

  /** @param {HTMLInputElement} input */
  picked(input) {
    if (input.files) upload(chosen(input.files), this.bucket, this.folder);
    input.value = "";
  }

  // Loading and order.

  load() {
    this.source?.stop();
    this.failure = null;
    const changed = (/** @type {any} */ error) => {
      if (isGone(error)) return;
      this.failure = error;
      this.later ||= requestAnimationFrame(() => {
        this.later = 0;
        this.arrange();
      });
    };
    if (this.isSearch) {
      const hits = new Hits(this.bucket, this.folder, this.text, changed);
      this.source = /** @type {any} */ (hits);
      hits.load();
    } else {
      const listing = new Listing(this.bucket, this.folder, changed);
      this.source = /** @type {any} */ (listing);
      listing.load(this.facts?.objectCount ?? null);
    }
  }

  /** Loads in the background and replaces the list when the new one is complete. */
  reload() {
    if (this.isSearch) return this.load();
    const before = this.rows.length;
    if (this.coming !== this.source) this.coming?.stop();
    const quiet = new Listing(this.bucket, this.folder, (error, isRetrying) => {
      if (isGone(error)) return;
      if (quiet !== this.source) {
        // The list stays while its successor is retried, loaded or sorted.
        if (isRetrying) return;
        const isReady = quiet.isWhole ? quiet.ordered(this.order) !== null : quiet.entries.length >= before;
        if (!isReady && !error) return;
        this.source?.stop();
        this.source = /** @type {any} */ (quiet);
      }
      this.failure = error;
      this.arrange();
    });
    quiet.inherit(this.source);
    quiet.load(null);
    this.coming = quiet;
    bucketAndScopes(this.bucket).then(({ bucket }) => { this.facts = bucket; if (this.folder === "") quiet.counted(bucket.objectCount); }, () => {});
  }

  /** Reloads after uploads into this folder. @param {Set<string>} folders */
  stored(folders) {
    const mine = `${this.bucket}/${this.folder}`;
    if ([...folders].some((folder) => folder.startsWith(mine))) this.reload();
  }

  /** Shows the entries in the current order, with the filter applied. */
  arrange() {
    // An order needs every entry; until then the list has the order of the server.
    const ordered = this.isSearch ? null : this.source.ordered(this.order);
    const isPlain = this.isSearch || this.filter === "";
    const entries = ordered ?? this.source.entries;
    this.place(isPlain ? entries : filtered(entries, this.filter), isPlain ? this.source.length : 0);
    if (this.toSelect.length > 0 && this.source.isWhole) {
      for (const name of this.toSelect) if (entries.some((/** @type {any} */ it) => it.key === this.folder + name)) this.selection.names.add(this.folder + name);
      this.toSelect = [];
      this.drawBar();
      this.list.refresh();
    }
    this.sayStatus();
    this.arrive();
    const { column, isDescending } = columnOf(this.order);
    for (const head of this.header.querySelectorAll("[data-order]")) {
      head.firstChild.disabled = this.isSearch;
      const is = !this.isSearch && column === head.dataset.order;
      head.setAttribute("aria-sort", !is ? "none" : isDescending ? "descending" : "ascending");
    }
    this.preview?.refresh();
  }

  /** Puts rows into the list; the active row and the anchor of the selection follow their entries. @param {any[]} rows @param {number} expected */
  place(rows, expected) {
    const { list, selection } = this;
    const keyAt = (/** @type {number} */ index) => this.rows[index]?.key;
    const [active, anchor] = [keyAt(list.active), keyAt(selection.anchor)];
    const isMoved = list.active > 0 || list.scroller.scrollTop > 0;
    this.rows = rows;
    const length = Math.max(rows.length, expected);
    if (anchor !== keyAt(selection.anchor)) selection.anchor = Math.max(0, rows.findIndex((entry) => entry.key === anchor));
    const to = isMoved && active !== undefined && active !== keyAt(list.active) ? rows.findIndex((entry) => entry.key === active) : -1;
    if (to >= 0) list.follow(to, length);
    else list.setCount(length);
  }

  /** Focuses the list once it has rows, unless another element has the focus. */
  arrive() {
    if (this.hasArrived || this.rows.length === 0) return;
    const at = cameFrom === "" ? 0 : this.rows.findIndex((entry) => entry.key === cameFrom);
    if (at < 0 && !this.source.isWhole) return;
    cameFrom = "";
    this.hasArrived = true;
    const isFree = document.activeElement === document.body || !document.activeElement;
    if (!this.preview) this.list.activate(Math.max(0, at), { focus: isFree });
  }

  sayStatus() {
    const { source } = this;
    const total = this.rows.length;
    const text = this.statusText();
    const isEmpty = total === 0 && (source.isWhole || this.failure);
    this.status.textContent = isEmpty && (this.failure || !this.isSearch) ? "" : this.failure ? explain(this.failure) : text;
    // Nothing can be done in a bucket that does not exist.
    this.tools.hidden = this.failure?.code === "bucket_not_found";
    this.empty.hidden = !isEmpty;
    this.list.element.hidden = Boolean(isEmpty);
    if (this.isSearch && source.isWhole !== this.saidWhole) say(text);
    this.saidWhole = source.isWhole;
    if (!isEmpty) return;
    if (this.failure) {
      fill(this.empty, icon("warning", "icon large"), make("p", { role: "alert" }, explain(this.failure)),
        make("p", { class: "buttons" },
          make("button", { type: "button", click: () => this.load() }, icon("again"), "Try again"),
          this.tools.hidden && make("a", { class: "as-button", href: "/-/" }, "Home")));
    } else if (this.isSearch) {
      fill(this.empty, icon("search", "icon large"), make("h2", null, "No results"),
        make("p", null, `No results for “${this.text}”${this.folder ? ` in ${this.folder}` : ""}. Try a shorter or different query.`));
    } else if (this.filter !== "") {
      fill(this.empty, icon("search", "icon large"), make("h2", null, "No results"), make("p", null, `No names contain “${this.filter}”.`),
        make("p", { class: "buttons" }, make("button", { type: "button", click: () => { this.filterBox.focus(); this.clearFilter(); } }, icon("close"), "Clear filter")));
    } else {
      fill(this.empty, icon("trug", "icon large"), make("h2", null, "No files yet"),
        make("p", null, this.may("upload") ? "Drop files or folders here, paste them, or select them." : "Your role in this bucket is to view files."),
        this.may("upload") && make("p", { class: "buttons" },
          make("button", { type: "button", class: "primary", click: () => this.picker.click() }, icon("upload"), "Upload files"),
          make("button", { type: "button", click: () => this.folderPicker.click() }, icon("folder"), "Upload folder")));
    }
  }

  /** The text of the status line. */
  statusText() {
    const { source } = this;
    if (this.isSearch) return `${source.isExact ? "" : "At least "}${count(source.total, "result")} in ${source.took > 0 ? number(source.took) : "under 1"} ms`;
    if (this.filter !== "") return `${number(this.rows.length)} of ${count(source.entries.length, "item")}`;
    const selected = this.selection.size > 0 ? ` · ${this.selectionText()}` : "";
    const amount = `${source.isCounted ? "" : "at least "}${bytes(source.bytes)}${source.isWhole ? "" : " so far"}`;
    return `${counted(source.folderCount, source.length - source.folderCount)} · ${amount}${selected}`;
  }

  /** The count and the size of the selection. */
  selectionText() {
    const targets = this.targets();
    const sum = targets.reduce((all, it) => all + (it.size ?? 0), 0);
    const isExact = targets.every((it) => it.size !== null && it.isExact !== false);
    return `${number(this.selection.size)} selected, ${isExact ? "" : "at least "}${bytes(sum)}`;
  }

  turnView() {
    this.isTiled = !this.isTiled;
    preferences.set("view", this.isTiled ? "tiles" : "list");
    fill(this.viewButton, icon(this.isTiled ? "list" : "grid"));
    const had = this.list.element.contains(document.activeElement);
    this.list.use(this.isTiled ? tiles(this) : lines(this));
    this.list.setCount(this.list.count);
    if (had) this.list.activate(this.list.active);
    this.write();
  }

  /** Sorts by a column; by the current column in the other direction. @param {string} column */
  sortBy(column) {
    const now = columnOf(this.order);
    const order = now.column === column && !now.isDescending ? `-${column}` : column;
    this.order = order === "name" ? "" : order;
    this.arrange();
    this.write();
  }

  writeAddress() {
    if (this.preview || this.isClosed) return;
    const selected = this.selection.size <= NAMES_MAX ? [...this.selection.names].map((key) => key.slice(this.folder.length)) : [];
    const view = this.isTiled ? "tiles" : null;
    if (this.isSearch) amend(searchAddress(this.bucket, { q: this.text, parent: this.folder, view, selected }));
    else amend(filesAddress(this.bucket, this.folder, { view, sort: this.order, filter: this.filter, selected }));
  }

  // Selection and actions.

  /** Shows a changed selection. */
  selected() {
    this.list.refresh();
    this.drawBar();
    this.write();
  }

  /** The selected entries; without a selection, the active one. */
  targets() {
    if (this.selection.size === 0) return this.rows[this.list.active] && this.list.element.contains(document.activeElement) ? [this.rows[this.list.active]] : [];
    return this.rows.filter((entry) => this.selection.has(entry.key));
  }

  /** Whether the account may do something in the bucket. @param {"move" | "upload" | "delete" | "presign"} action */
  may(action) {
    const needed = action === "move" ? ["upload", "delete"] : [action];
    return this.scopes === null || needed.every((scope) => this.scopes?.includes(scope));
  }

  /** Hides the tools that the role forbids. */
  showRights() {
    this.tools.classList.toggle("read-only", !this.may("upload"));
    this.barFor = "";
    this.drawBar();
    this.sayStatus();
  }

  drawBar() {
    const { size } = this.selection;
    this.allBox.setAttribute("aria-checked", size === 0 ? "false" : size === this.rows.length ? "true" : "mixed");
    this.bar.hidden = size === 0;
    this.sayStatus();
    if (size === 0) return;
    const targets = this.targets();
    const hasFiles = targets.some((it) => !it.isFolder);
    const text = `${number(size)} selected`;
    const shape = `${size > 1}${hasFiles}${this.mayCopy(targets)}${this.scopes}`;
    const label = this.bar.querySelector("strong");
    if (label && this.barFor === shape) {
      label.textContent = text;
      return;
    }
    this.barFor = shape;
    const press = (/** @type {string} */ name, /** @type {string} */ image, /** @type {() => any} */ run, shown = true, extra = {}) =>
      shown && make("button", { type: "button", title: name, click: run, ...extra }, icon(image), make("span", null, name));
    fill(this.bar,
      make("button", { type: "button", class: "bare", "aria-label": "Clear selection", click: () => this.clearSelection() }, icon("close")),
      make("strong", null, text),
      press(size > 1 ? "Copy links" : "Copy link", "link", () => this.copy(), this.mayCopy(targets)),
      press(size === 1 && hasFiles ? "Download" : "Download as zip", "download", () => this.download()),
      press("Rename", "pencil", () => this.rename(), size === 1 && this.may("move")),
      press("Move to…", "move", () => this.move(), this.may("move")),
      press("Delete", "trash", () => this.remove(), this.may("delete"), { class: "danger" }),
      make("button", { type: "button", class: "bare", title: "More actions", "aria-label": "More actions", "aria-haspopup": "menu", click: (/** @type {any} */ event) => this.menu(event.currentTarget) }, icon("more")));
  }

  /** Opens the menu of the selection, or of the folder. @param {any} at @param {boolean} [isFolder] */
  menu(at, isFolder = false) {
    return this.withModule(() => import("./file-menu.mjs"), (menus) => {
      if (this.isClosed) return;
      if (isFolder) menus.folderMenu(this, at);
      else menus.selectionMenu(this, at);
    });
  }

  /** Opens the menu of a row, which becomes the selection unless it is a part of it. @param {number} index @param {any} at */
  menuAt(index, at) {
    const entry = this.rows[index];
    if (!entry) return;
    if (!this.selection.has(entry.key)) {
      this.selection.only(entry.key, index);
      this.selected();
    }
    this.list.activate(index);
    this.menu(at);
  }

  /** @param {any} event */
  contextMenu(event) {
    if (event.target.closest(".head")) return;
    event.preventDefault();
    // The long press of a finger selects.
    if (this.gestures?.pointer === "touch") return;
    const index = this.list.indexOf(event);
    const at = { x: event.clientX, y: event.clientY };
    if (this.rows[index]) this.menuAt(index, at);
    else this.menu(at, true);
  }

  /** Selects every row, or none if every row is selected already. @param {boolean} [isAlways] */
  selectAll(isAlways = false) {
    if (!isAlways && this.selection.size === this.rows.length) this.selection.clear();
    else this.selection.all(this.rows.map((entry) => entry.key));
    this.selected();
  }

  clearSelection() {
    this.selection.clear();
    this.selected();
    this.list.activate(this.list.active);
  }

  files() {
    return this.targets().filter((it) => !it.isFolder);
  }

  /** Whether links to entries can be copied: in a private bucket, a shared link to one. @param {any[]} targets */
  mayCopy(targets) {
    return this.isPrivate() ? targets.length === 1 && this.may("presign") : targets.some((it) => !it.isFolder);
  }

  isPrivate() {
    return this.facts?.access === "private";
  }

  /** @param {any[]} [targets] */
  copy(targets = this.targets()) {
    if (!this.mayCopy(targets)) return;
    if (this.isPrivate()) return this.withModule(() => import("./share.mjs"), ({ copyShared }) => copyShared(this.bucket, targets[0].key));
    copyLinks(this.bucket, targets.filter((it) => !it.isFolder).map((it) => it.key));
  }

  /** Shows the description of a file. @param {string} [key] */
  info(key = this.files()[0]?.key) {
    if (key) this.withModule(() => import("./info.mjs"), ({ info }) => info(this, key));
  }

  share() {
    const keys = this.targets().map((it) => it.key);
    if (keys.length === 0 || !this.may("presign")) return;
    this.withModule(() => import("./share.mjs"), ({ share }) => share(this.bucket, keys, this.facts?.access === "public"));
  }

  /** Requests files into a folder. @param {string} folder */
  request(folder) {
    return this.withModule(() => import("./share.mjs"), ({ request }) => request(this.bucket, folder));
  }

  /** Offers the URLs of files in several formats. */
  copyForms(keys = this.files().map((it) => it.key)) {
    if (keys.length > 0) this.withModule(() => import("./copy-forms.mjs"), ({ chooseForm }) => chooseForm(this.bucket, keys, this.facts?.access === "public"));
  }

  /** Downloads the file of the selection, or several entries as a zip archive. */
  download() {
    const targets = this.targets();
    if (targets.length === 1 && !targets[0].isFolder) download(fileAddress(this.bucket, targets[0].key, { download: "1" }));
    // One path instead of very many.
    else if (targets.length === this.rows.length && !this.isSearch) this.downloadFolder();
    else if (targets.length > 0) this.zip(targets.map((it) => it.key));
  }

  downloadFolder() {
    this.zip([this.folder]);
  }

  /** @param {string[]} keys */
  zip(keys) {
    return this.withModule(() => import("./manage.mjs"), async ({ prepareZip }) => download(await prepareZip(this.bucket, keys)), "Download");
  }

  rename() {
    const [target] = this.targets();
    if (target && this.may("move")) rename(this.bucket, target, () => this.afterChange());
  }

  move() {
    if (this.may("move")) this.pick(false);
  }

  copyTo() {
    if (this.may("upload")) this.pick(true);
  }

  /** Asks for the target folder of the selection. @param {boolean} isCopy */
  async pick(isCopy) {
    const targets = this.targets();
    if (targets.length === 0) return;
    try {
      const { pickFolder } = await bring(() => import("./folder-picker.mjs"));
      const refused = (/** @type {string} */ key) => {
        if (targets.some((it) => it.isFolder && key.startsWith(it.key))) return "A folder can't be put into itself";
        if (!isCopy && targets.every((it) => folderOf(it.key) === key)) return "This is the current folder";
        return null;
      };
      pickFolder({
        bucket: this.bucket, folder: this.folder, title: `${isCopy ? "Copy" : "Move"} ${named(targets)}`, label: isCopy ? "Copy here" : "Move here", refused,
        done: (key) => this.moveInto(key, isCopy, targets),
      });
    } catch (error) {
      complain(error);
    }
  }

  /** Moves or copies entries into a folder. @param {string} key @param {boolean} isCopy @param {any[]} [targets] */
  moveInto(key, isCopy, targets = this.targets()) {
    return this.withModule(() => import("./relocate.mjs"), ({ relocate }) => relocate(this.bucket, targets, key, isCopy, () => this.afterChange()));
  }

  /** The selection in words. @param {any[]} targets */
  named(targets) {
    return named(targets);
  }

  duplicate() {
    if (!this.may("upload")) return;
    const [targets, names] = [this.targets(), new Set(this.source.entries.map((/** @type {any} */ it) => it.key))];
    return this.withModule(() => import("./relocate.mjs"), ({ duplicate }) => duplicate(this.bucket, targets, names, () => this.afterChange()));
  }

  /** @param {string} key */
  transform(key) {
    go(playgroundAddress(this.bucket, key));
  }

  importUrls() {
    return this.withModule(() => import("./importing.mjs"), ({ importAddresses }) => importAddresses(this.bucket, this.folder, () => this.changed()));
  }

  /** @param {any[]} [targets] */
  remove(targets = this.targets()) {
    if (targets.length === 0 || !this.may("delete")) return;
    const at = this.list.active;
    remove(this.bucket, targets, (keys) => {
      this.selection.drop(keys);
      this.source.remove(keys);
      this.coming?.remove(keys);
      this.drawBar();
      this.write();
      if (!this.preview && document.activeElement === document.body) this.list.activate(Math.min(at, this.list.count - 1));
    }, () => this.reload());
  }

  /** Shows a change that was made elsewhere. */
  changed() {
    if (!this.isClosed) this.reload();
  }

  afterChange() {
    if (this.isClosed) return;
    this.selection.clear();
    this.drawBar();
    this.reload();
  }

  newFolder() {
    if (!this.may("upload")) return;
    newFolder((name) => go(filesAddress(this.bucket, this.folder + name)));
  }

  more() {
    return this.withModule(() => import("./more.mjs"), ({ more }) => more(this.bucket, this.folder, () => this.changed()));
  }

  /**
   * Runs an action of a module that is loaded on demand; reports a failure.
   * @template T @param {() => Promise<T>} load @param {(module: T) => any} run @param {string} [what] failed, for the message
   */
  async withModule(load, run, what) {
    try {
      await run(await bring(load));
    } catch (error) {
      complain(error, what);
    }
  }

  // The preview.

  /** @param {number} index */
  open(index) {
    const entry = this.rows[index];
    if (!entry) return;
    this.selection.anchor = index;
    if (entry.isFolder) return go(filesAddress(this.bucket, entry.key));
    go(this.addressOf(entry.key));
  }

  /** The address of a file that is open over this view. @param {string} key */
  addressOf(key) {
    if (this.isSearch) return searchAddress(this.bucket, { q: this.text, parent: this.folder, open: key });
    return filesAddress(this.bucket, key, { view: this.isTiled ? "tiles" : null, sort: this.order, filter: this.filter });
  }

  /** Opens or closes the preview as in the address. @param {ReturnType<typeof import("./address.mjs").read>} place */
  showOpen(place) {
    const key = this.isSearch ? place.values.get("open") ?? "" : place.key.endsWith("/") ? "" : place.key;
    if (key === "") {
      this.preview?.close();
      return;
    }
    // A preview that was closed just now has not reported it yet.
    if (this.preview?.isOpen) return this.preview.show(key);
    const preview = new Preview(this.bucket, key, {
      adjacent: (from, step) => {
        const at = this.rows.findIndex((entry) => entry.key === from);
        for (let next = at + step; at >= 0 && next >= 0 && next < this.rows.length; next += step) {
          if (!this.rows[next].isFolder) return this.rows[next].key;
        }
        return null;
      },
      go: (next) => amend(this.addressOf(next)),
      mayDelete: () => this.may("delete"),
      mayCopy: () => this.mayCopy([{}]),
      copy: (target) => this.copy([{ key: target }]),
      removed: (target) => this.remove([{ key: target, name: nameOf(target), isFolder: false }]),
      closed: (last) => {
        if (this.preview !== preview) return;
        this.preview = null;
        if (this.isClosed) return;
        this.writeAddress();
        const at = this.rows.findIndex((entry) => entry.key === last);
        this.list.activate(at >= 0 ? at : this.list.active);
      },
      play: (target) => go(playgroundAddress(this.bucket, target)),
      info: (target) => this.info(target),
      copyForms: (keys) => this.copyForms(keys),
    });
    this.preview = preview;
  }

  // Keyboard.

  /** Keys of the search and filter fields. @param {KeyboardEvent} event */
  boxKey(event) {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      if (event.key === "Enter" && this.rows.length > 0 && this.isSearch) return this.open(0);
      this.list.activate(0);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (this.isSearch) return go(filesAddress(this.bucket, this.folder));
      this.clearFilter();
      this.list.activate(this.list.active);
    }
  }

  clearFilter() {
    this.filter = this.filterBox.value = "";
    this.arrange();
    this.write();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (document.querySelector("dialog[open]")) return;
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.key === "f" && !this.isSearch) {
      event.preventDefault();
      this.filterBox.focus();
      this.filterBox.select();
      return;
    }
    if (isTyped(event) || event.altKey) return;
    if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) return this.menuKey(event);
    const onButton = /** @type {Element} */ (event.target).closest?.("button, a, summary");
    if (this.command(event, isCommand)) return event.preventDefault();
    if (onButton || isCommand && event.key !== "a") return;
    if (isCommand) {
      event.preventDefault();
      this.selection.all(this.rows.map((entry) => entry.key));
      return this.selected();
    }
    const to = this.list.step(event);
    if (to >= 0 && this.list.count > 0) {
      event.preventDefault();
      const first = !this.list.element.contains(document.activeElement) && event.key === "ArrowDown";
      this.list.activate(first ? this.list.active : to);
      if (event.shiftKey) {
        this.selection.reach(this.list.active, (at) => this.rows[at]?.key);
        this.selected();
      } else this.selection.anchor = this.list.active;
      return;
    }
    const entry = this.rows[this.list.active];
    if (event.key === " " && this.typed === "") {
      event.preventDefault();
      if (!entry) return;
      this.selection.toggle(entry.key, this.list.active);
      this.selected();
    } else if (event.key === "Enter") this.open(this.list.active);
    else if (event.key.length === 1 && this.list.element.contains(document.activeElement)) this.typeAhead(event.key);
  }

  /** Opens the menu of the active row or, from elsewhere, of the folder. @param {KeyboardEvent} event */
  menuKey(event) {
    event.preventDefault();
    const row = this.list.shown.get(this.list.active);
    const box = (row ?? this.list.element).getBoundingClientRect();
    const at = { x: box.left + 48, y: row ? box.bottom : box.top + 8 };
    if (row?.contains(document.activeElement)) this.menuAt(this.list.active, at);
    else this.menu(at, true);
  }

  /** Shortcuts that work wherever the focus is. @param {KeyboardEvent} event @param {boolean} isCommand */
  command(event, isCommand) {
    if (isCommand) return false;
    switch (event.key) {
      case "Backspace":
        if (this.isSearch) go(filesAddress(this.bucket, this.folder));
        else if (this.folder !== "") {
          cameFrom = this.folder;
          go(filesAddress(this.bucket, folderOf(this.folder)));
        }
        else go("/-/");
        return true;
      case "Delete": this.remove(); return true;
      case "F2": this.rename(); return true;
      case "/": this.frame.focusSearch(); return true;
      case "?": help(); return true;
      case "Escape":
        if (this.selection.size === 0) return false;
        this.clearSelection();
        return true;
    }
    // Letters extend the name that is being typed.
    if (this.typed !== "") return false;
    switch (event.key) {
      case "u": if (this.may("upload")) this.picker.click(); return true;
      case "c": this.copy(); return true;
      case "f": this.copyForms(); return true;
      case "d": this.download(); return true;
      case "m": this.move(); return true;
      case "i": this.info(); return true;
      case "n": this.newFolder(); return true;
      case "g": this.turnView(); return true;
      case "r": this.reload(); return true;
      case ".": this.more(); return true;
      default: return false;
    }
  }

  /** Activates the next entry whose name starts with the typed letters. @param {string} letter */
  typeAhead(letter) {
    this.typed += letter.toLowerCase();
    this.forget();
    const { rows } = this;
    const from = this.typed.length > 1 ? this.list.active : this.list.active + 1;
    for (let step = 0; step < rows.length; step += 1) {
      const at = (from + step) % rows.length;
      if (rows[at].name.toLowerCase().startsWith(this.typed)) return this.list.activate(at);
    }
  }

  close() {
    this.isClosed = true;
    this.source?.stop();
    this.coming?.stop();
    this.write.cancel();
    this.stayed();
    this.loadPictures.cancel();
    this.preview?.close();
    this.gestures?.close();
    this.list.close();
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("paste", this.onPaste);
    changes.removeEventListener("stored", this.onStored);
  }
}
