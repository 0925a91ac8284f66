// The preview of a file: images to zoom, video and audio to play, documents and text to read, and the first bytes of
// anything else. Content is displayed as its type or as text, and never run.

import { fileAddress, nameOf } from "./address.mjs";
import { explain, headOf, isGone, load } from "./api.mjs";
import { download } from "./actions.mjs";
import { fill, make, set } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { kindOfType, kindWord, needsConversion, typeLabel } from "./kinds.mjs";
import { say } from "./live.mjs";
import { bytes, count, moment, number } from "./text.mjs";

/** Bytes shown of a text, and of other content. */
const TEXT_BYTES = 512 * 1024;
const HEX_BYTES = 4096;
const SCALE_MIN = 1 / 32;
const SCALE_MAX = 32;
/** Pause before a file is loaded again while the server cannot be reached. */
const RETRY_MS = 3000;

/**
 * @typedef {object} Around
 * @property {(key: string, step: number) => string | null} adjacent the previous or the next file
 * @property {(key: string) => void} go called when another file is shown
 * @property {(key: string) => void} removed deletes the file
 * @property {() => boolean} mayDelete
 * @property {() => boolean} mayCopy
 * @property {(key: string) => any} copy copies a link to the file
 * @property {(key: string) => void} closed
 * @property {(key: string) => void} play opens the playground
 * @property {(key: string) => void} info shows the description
 * @property {(keys: string[]) => void} copyForms offers the URLs in several formats
 */

export class Preview {
  /** @param {string} bucket @param {string} key @param {Around} around */
  constructor(bucket, key, around) {
    this.bucket = bucket;
    this.key = "";
    this.around = around;
    this.scale = 0;
    /** @type {any} */
    this.retry = 0;
    const press = (/** @type {string} */ label, /** @type {string} */ image, /** @type {() => any} */ run, extra = {}) =>
      make("button", { type: "button", class: "bare", title: label, "aria-label": label, click: run, ...extra }, icon(image));
    this.title = make("h2", { id: "preview-title" });
    this.facts = make("p", { class: "faint" });
    this.stage = make("div", { class: "stage" });
    this.zoomLabel = make("button", { type: "button", class: "bare wide", title: "Fit or actual size (0)", click: () => this.zoom(this.scale === 0 ? 1 : 0) });
    this.zoomTools = make("span", { class: "zoom", hidden: true },
      press("Zoom out (−)", "minus", () => this.zoomBy(1 / 1.5)), this.zoomLabel, press("Zoom in (+)", "plus", () => this.zoomBy(1.5)));
    this.playTool = press("Transform (p)", "sliders", () => this.play());
    this.fileTools = [
      press("Copy link (c)", "link", () => this.around.copy(this.key)), press("Copy as… (f)", "code", () => this.around.copyForms([this.key])),
      press("Download (d)", "download", () => this.download()), press("Delete (Del)", "trash", () => this.remove()),
    ];
    this.before = press("Previous (←)", "left", () => this.step(-1), { class: "bare adjacent before" });
    this.next = press("Next (→)", "right", () => this.step(1), { class: "bare adjacent next" });
    this.dialog = make("dialog", { class: "preview", "aria-labelledby": "preview-title" },
      make("header", null, make("div", { class: "about" }, this.title, this.facts), this.zoomTools,
        make("span", { class: "tools" }, this.playTool, press("Info (i)", "info", () => this.around.info(this.key)), this.fileTools,
          press("Close (Esc)", "close", () => this.dialog.close()))),
      this.before, this.stage, this.next);
    this.dialog.addEventListener("close", () => this.ended());
    this.dialog.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.onKey(event));
    this.stage.addEventListener("click", (/** @type {Event} */ event) => { if (event.target === this.stage && this.scale === 0) this.dialog.close(); });
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.stage.tabIndex = -1;
    this.show(key);
  }

  /** @param {string} key */
  async show(key) {
    if (key === this.key) return;
    this.key = key;
    this.stopped?.abort();
    const { signal } = (this.stopped = new AbortController());
    this.scale = 0;
    this.zoomTools.hidden = true;
    this.playTool.hidden = true;
    this.isThere(true);
    this.title.textContent = nameOf(key);
    this.facts.textContent = "";
    this.refresh();
    this.silence();
    clearTimeout(this.retry);
    fill(this.stage, make("p", { class: "faint waiting" }, "Loading"));
    this.stage.className = "stage";
    this.stage.focus();
    try {
      const head = await headOf(this.bucket, key, { signal });
      const type = head.headers.get("Content-Type") ?? "";
      const size = Number(head.headers.get("Content-Length")) || 0;
      this.version = head.headers.get("ETag") ?? "";
      const kind = kindOfType(type, nameOf(key));
      this.said = [kindWord(kind), bytes(size), moment(head.headers.get("Last-Modified") ?? "")].filter(Boolean);
      this.facts.textContent = this.said.join(" · ");
      say(`${nameOf(key)}, ${this.said.join(", ")}`);
      await this.present(kind, size, type, signal);
    } catch (/** @type {any} */ error) {
      if (!isGone(error)) this.failed(error);
    }
  }

  /** Says why a file can't be shown, and what to do. @param {any} error */
  failed(error) {
    this.isThere(error.status !== 404);
    if (error.status === 404) return this.problem("This file was moved, renamed or deleted.");
    if (error.code === "damaged") {
      const versions = `/-/deleted${fileAddress(this.bucket, this.key)}`;
      return this.problem("This file is damaged. Restore an older version or a backup.", make("a", { class: "as-button", href: versions, click: () => this.dialog.close() }, "Versions"));
    }
    if (error.status !== 0) return this.problem(explain(error));
    this.problem("Offline – retrying");
    const { key } = this;
    this.retry = setTimeout(() => {
      if (!this.isOpen || this.key !== key) return;
      this.key = "";
      this.show(key);
    }, RETRY_MS);
  }

  /** A message in place of the file. @param {string} text @param {...any} actions */
  problem(text, ...actions) {
    fill(this.stage, make("div", { class: "empty" }, icon("warning", "icon large"), make("p", { role: "alert" }, text), actions.length > 0 && make("p", { class: "buttons" }, actions)));
  }

  /** Finds out why an image or a recording can't be shown: the connection, the file, or its format. @param {string} text @param {number} size @param {AbortSignal} signal */
  async undecodable(text, size, signal) {
    try {
      await load("GET", fileAddress(this.bucket, this.key), { signal, cache: "no-store", headers: { Range: "bytes=0-0" } });
      this.problem(text, make("button", { type: "button", click: () => this.download() }, icon("download"), "Download"),
        make("button", { type: "button", click: () => this.hex(size, signal) }, icon("code"), "Show bytes"));
    } catch (error) {
      if (!isGone(error)) this.failed(error);
    }
  }

  /** Hides the actions on a file that does not exist. @param {boolean} isThere */
  isThere(isThere) {
    for (const tool of this.fileTools) tool.hidden = !isThere;
    this.fileTools[0].hidden = !isThere || !this.around.mayCopy();
    this.fileTools[this.fileTools.length - 1].hidden = !isThere || !this.around.mayDelete();
  }

  /** Updates the arrows: the list may have grown. */
  refresh() {
    this.before.hidden = this.around.adjacent(this.key, -1) === null;
    this.next.hidden = this.around.adjacent(this.key, 1) === null;
  }

  /** @param {import("./kinds.mjs").Kind} kind @param {number} size @param {string} type @param {AbortSignal} signal */
  async present(kind, size, type, signal) {
    // The version is a part of the address, so that a replaced file is not shown from the cache.
    const format = needsConversion(this.key) ? "webp" : null;
    const address = fileAddress(this.bucket, this.key, { format, v: this.version?.replaceAll('"', "").slice(0, 12) });
    const broken = () => this.undecodable("This image can't be decoded. It may be damaged or use an unsupported variant.", size, signal);
    const unplayable = () => this.undecodable(`Your browser can't play this format (${typeLabel(nameOf(this.key))}).`, size, signal);
    if (size === 0) return fill(this.stage, make("div", { class: "empty" }, icon("file", "icon large"), make("p", null, "Empty file (0 bytes)")));
    switch (kind) {
      case "picture":
      case "vector":
        return this.picture(address, kind, broken);
      case "film":
        return fill(this.stage, make("video", { controls: true, preload: "metadata", playsinline: true, src: address, error: unplayable, "aria-label": nameOf(this.key) }));
      case "sound":
        return fill(this.stage, make("audio", { controls: true, preload: "metadata", src: address, error: unplayable, "aria-label": nameOf(this.key) }));
      case "pdf":
        return fill(this.stage, make("iframe", { src: address, title: nameOf(this.key) }));
      case "text":
        return this.text(size, type, signal);
      default:
        return this.hex(size, signal);
    }
  }

  /** @param {string} address @param {string} kind @param {() => void} broken */
  picture(address, kind, broken) {
    const image = make("img", { alt: nameOf(this.key), draggable: "false", error: broken });
    image.addEventListener("load", () => {
      if (this.key && image.isConnected && image.naturalWidth > 0) {
        this.facts.textContent = [`${number(image.naturalWidth)} × ${number(image.naturalHeight)}`, ...(this.said ?? [])].join(" · ");
      }
      this.zoomTools.hidden = false;
      this.zoom(0);
    });
    image.addEventListener("dblclick", () => this.zoom(this.scale === 0 ? 1 : 0));
    this.image = image;
    this.playTool.hidden = kind !== "picture";
    const frame = make("div", { class: "canvas" }, image);
    set(frame, { wheel: (/** @type {WheelEvent} */ event) => this.onWheel(event), pointerdown: (/** @type {PointerEvent} */ event) => this.onDrag(event) });
    fill(this.stage, frame);
    image.src = address;
  }

  /** Zooms: 0 fits the image into the frame, 1 shows its actual size. @param {number} scale @param {{x: number, y: number} | null} [at] the point that stays */
  zoom(scale, at = null) {
    const { image } = this;
    if (!image?.isConnected) return;
    const frame = image.parentElement;
    const before = image.getBoundingClientRect();
    const point = at ?? { x: frame.getBoundingClientRect().x + frame.clientWidth / 2, y: frame.getBoundingClientRect().y + frame.clientHeight / 2 };
    const part = { x: (point.x - before.x) / before.width, y: (point.y - before.y) / before.height };
    this.scale = scale;
    frame.classList.toggle("free", scale > 0);
    // A zoomed image is scrolled by keys too.
    set(frame, scale > 0 ? { tabindex: 0, role: "group", "aria-label": "Zoomed image, scrollable" } : { tabindex: null, role: null, "aria-label": null });
    image.style.width = scale > 0 ? `${image.naturalWidth * scale}px` : "";
    image.classList.toggle("sharp", scale > 2);
    const after = image.getBoundingClientRect();
    frame.scrollLeft += after.x + part.x * after.width - point.x;
    frame.scrollTop += after.y + part.y * after.height - point.y;
    const shown = scale || after.width / image.naturalWidth;
    this.zoomLabel.textContent = `${Math.round(100 * shown)} %`;
    this.zoomLabel.setAttribute("aria-label", `Shown at ${Math.round(100 * shown)} %`);
  }

  /** @param {number} factor @param {{x: number, y: number} | null} [at] */
  zoomBy(factor, at) {
    if (!this.image?.isConnected) return;
    const now = this.scale || this.image.getBoundingClientRect().width / this.image.naturalWidth;
    this.zoom(Math.max(SCALE_MIN, Math.min(SCALE_MAX, now * factor)), at);
  }

  /** @param {WheelEvent} event */
  onWheel(event) {
    if (!event.ctrlKey && !event.metaKey && this.scale > 0) return;
    event.preventDefault();
    this.zoomBy(Math.exp(-event.deltaY / 300), { x: event.clientX, y: event.clientY });
  }

  /** Drags a zoomed image; touch scrolls natively. @param {PointerEvent} event */
  onDrag(event) {
    const frame = /** @type {HTMLElement} */ (event.currentTarget);
    if (event.pointerType === "touch" || this.scale === 0 || event.button !== 0) return;
    event.preventDefault();
    frame.setPointerCapture(event.pointerId);
    const start = { x: event.clientX + frame.scrollLeft, y: event.clientY + frame.scrollTop };
    const drag = (/** @type {PointerEvent} */ now) => {
      frame.scrollLeft = start.x - now.clientX;
      frame.scrollTop = start.y - now.clientY;
    };
    frame.addEventListener("pointermove", drag);
    frame.addEventListener("pointerup", () => frame.removeEventListener("pointermove", drag), { once: true });
  }

  /** The first bytes of the file. @param {number} most @param {number} size @param {AbortSignal} signal */
  async head(most, size, signal) {
    const headers = size > most ? { Range: `bytes=0-${most - 1}` } : {};
    const answer = await load("GET", fileAddress(this.bucket, this.key), { signal, headers });
    return new Uint8Array(await answer.arrayBuffer()).subarray(0, most);
  }

  /** @param {number} size @param {string} type @param {AbortSignal} signal */
  async text(size, type, signal) {
    const head = await this.head(TEXT_BYTES, size, signal);
    const charset = /charset="?([\w-]+)/i.exec(type)?.[1] ?? "utf-8";
    let decoder = new TextDecoder();
    try {
      decoder = new TextDecoder(charset);
    } catch {
      // An unknown character set is read as UTF-8.
    }
    let text = decoder.decode(head);
    if (text.includes("\0")) return this.hex(size, signal);
    const isWhole = size <= TEXT_BYTES;
    if (isWhole && /json/.test(type)) {
      try {
        text = JSON.stringify(JSON.parse(text), null, 2);
      } catch {
        // Invalid JSON is shown as text.
      }
    }
    fill(this.stage, isWhole ? null : make("p", { class: "faint part" }, `Showing the first ${bytes(TEXT_BYTES)} of ${bytes(size)}`),
      make("pre", { class: "text", tabindex: "0", role: "group", "aria-label": nameOf(this.key) }, text));
  }

  /** @param {number} size @param {AbortSignal} signal */
  async hex(size, signal) {
    try {
      const head = await this.head(HEX_BYTES, size, signal);
      const rows = [];
      // A narrow screen has room for half of a line.
      const wide = this.stage.clientWidth < 640 ? 8 : 16;
      for (let at = 0; at < head.length; at += wide) {
        const row = [...head.subarray(at, at + wide)];
        const digits = row.map((byte) => byte.toString(16).padStart(2, "0"));
        const letters = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
        const halves = [digits.slice(0, 8), digits.slice(8)].slice(0, wide / 8).map((half) => half.join(" ").padEnd(23));
        rows.push([at.toString(16).padStart(4, "0"), ...halves, letters].join("  "));
      }
      fill(this.stage, make("p", { class: "faint part" }, size > head.length ? `Showing the first ${count(head.length, "byte")}` : `${count(size, "byte")} (binary)`),
        make("pre", { class: "text hex", tabindex: "0", role: "group", "aria-label": "Bytes" }, rows.join("\n")));
    } catch (error) {
      if (!isGone(error)) fill(this.stage, make("p", { role: "alert" }, explain(error)));
    }
  }

  /** @param {number} step */
  step(step) {
    const key = this.around.adjacent(this.key, step);
    if (key === null) return;
    this.around.go(key);
    this.show(key);
  }

  play() {
    if (this.playTool.hidden) return;
    const { key } = this;
    this.dialog.close();
    this.around.play(key);
  }

  download() {
    download(fileAddress(this.bucket, this.key, { download: "1" }));
  }

  remove() {
    const { key } = this;
    const next = this.around.adjacent(key, 1) ?? this.around.adjacent(key, -1);
    this.around.removed(key);
    if (next === null) return this.dialog.close();
    this.around.go(next);
    this.show(next);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const target = /** @type {Element} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("video, audio, iframe")) return;
    const isReading = target.closest("pre, .free") && ["ArrowLeft", "ArrowRight"].includes(event.key) && target.scrollWidth > target.clientWidth;
    if (isReading) return;
    /** @type {Record<string, () => any>} */
    const keys = {
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), "+": () => this.zoomBy(1.5), "=": () => this.zoomBy(1.5),
      "-": () => this.zoomBy(1 / 1.5), 0: () => this.zoom(this.scale === 0 ? 1 : 0), c: () => this.around.copy(this.key),
      f: () => this.around.copyForms([this.key]), d: () => this.download(), p: () => this.play(), i: () => this.around.info(this.key), Delete: () => { if (this.around.mayDelete()) this.remove(); },
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  get isOpen() {
    return this.dialog.open;
  }

  close() {
    if (this.isOpen) this.dialog.close();
  }

  /** Stops video and audio: a removed element would hold its connection. */
  silence() {
    const player = /** @type {HTMLMediaElement | null} */ (this.stage.querySelector("video, audio"));
    player?.removeAttribute("src");
    player?.load();
  }

  ended() {
    clearTimeout(this.retry);
    this.stopped?.abort();
    this.silence();
    fill(this.stage);
    this.dialog.remove();
    this.around.closed(this.key);
  }
}
