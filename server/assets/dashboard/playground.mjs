// Transforms of an image: the result next to the original, the bytes saved, and the URL and HTML to use.

import { fileAddress, filesAddress, folderOf, nameOf, playgroundAddress, publicAddress } from "./address.mjs";
import { explain, isGone, load } from "./api.mjs";
import { choice, field } from "./dialog.mjs";
import { debounced, fill, make } from "./dom.mjs";
import { icon } from "./icons.mjs";
import { say } from "./live.mjs";
import { snippet } from "./parts.mjs";
import { amend } from "./router.mjs";
import { snippetOf } from "./snippet.mjs";
import { bytes, number } from "./text.mjs";

/** @type {Record<string, any>} */
const DEFAULTS = { width: "800", format: "webp" };
const NAMES = ["width", "height", "fit", "format", "quality", "dpr"];

/** @param {any} place @param {any} frame */
export function view(place, frame) {
  frame.searchIn(place.bucket, "");
  return new Playground(place);
}

class Playground {
  /** @param {ReturnType<typeof import("./address.mjs").read>} place */
  constructor(place) {
    this.bucket = place.bucket;
    this.key = place.key;
    const given = Object.fromEntries(NAMES.map((name) => [name, place.values.get(name) ?? ""]));
    this.values = Object.values(given).some(Boolean) ? given : { ...given, ...DEFAULTS };
    /** @type {any} */
    this.before = null;
    /** @type {any} */
    this.after = null;
    this.element = make("div", { class: "playground" });
    this.make = debounced(250, () => this.run());
    this.build();
    this.original();
    this.run();
  }

  build() {
    const { values } = this;
    const side = (/** @type {string} */ label, /** @type {string} */ name) =>
      field(label, { name, type: "number", min: 1, max: 16384, value: values[name], placeholder: "Original", inputmode: "numeric" });
    this.quality = make("output", null);
    this.range = make("input", { name: "quality", type: "range", min: 1, max: 100, value: values.quality || 80, "aria-label": "Quality" });
    this.form = make("form", { class: "controls", input: () => this.changed(), submit: (/** @type {Event} */ event) => event.preventDefault() },
      make("div", { class: "pair" }, side("Width", "width"), side("Height", "height")),
      choice("Fit", { name: "fit" }, [["", "Contain – fit inside"], ["cover", "Cover – fill and crop"], ["fill", "Fill – stretch"]], values.fit),
      choice("Format", { name: "format" }, [["", "Original"], ["webp", "WebP"], ["avif", "AVIF"], ["jpg", "JPEG"], ["png", "PNG"], ["gif", "GIF"], ["auto", "Auto – best supported format"]], values.format),
      make("p", { class: "field" }, make("label", { class: "check" },
        make("input", { type: "checkbox", name: "own", checked: values.quality !== "" }), "Quality ", this.quality), this.range),
      choice("Device pixel ratio", { name: "dpr" }, [["", "1"], ["2", "2"], ["3", "3"]], values.dpr),
      make("button", { type: "button", click: () => this.reset() }, icon("again"), "Reset"));
    const pane = (/** @type {string} */ title) => {
      const facts = make("p", { class: "facts faint" });
      const canvas = make("div", { class: "canvas" });
      return { facts, canvas, element: make("figure", null, make("figcaption", null, make("h2", null, title), facts), canvas) };
    };
    this.before = pane("Original");
    this.after = pane("Result");
    this.saving = make("p", { class: "saving", role: "status" });
    this.limit = make("p", { class: "limit", role: "status", hidden: true }, icon("info"), make("span"));
    this.snippets = make("div", { class: "snippets" });
    fill(this.element,
      make("div", { class: "top-row" },
        make("nav", { class: "crumbs", "aria-label": "Folders" },
          make("a", { href: filesAddress(this.bucket) }, this.bucket), make("span", { class: "slash", "aria-hidden": "true" }, "/"),
          folderOf(this.key) && [make("a", { href: filesAddress(this.bucket, folderOf(this.key)) }, folderOf(this.key).slice(0, -1)), make("span", { class: "slash", "aria-hidden": "true" }, "/")],
          make("a", { href: filesAddress(this.bucket, this.key), "aria-current": "page" }, nameOf(this.key)))),
      make("h1", { class: "unseen" }, `Transform ${nameOf(this.key)}`),
      make("div", { class: "bench" }, this.form, make("div", { class: "panes" }, this.before.element, this.after.element), make("div", { class: "outcome-line" }, this.saving, this.limit), this.snippets));
    document.title = `${nameOf(this.key)} – trug`;
    this.showQuality();
  }

  showQuality() {
    const isOwn = this.form.elements.own.checked;
    this.range.disabled = !isOwn;
    this.quality.textContent = isOwn ? this.range.value : this.form.elements.format.value === "avif" ? "60 (default)" : "80 (default)";
  }

  changed() {
    this.showQuality();
    const data = new FormData(this.form);
    for (const name of NAMES) this.values[name] = String(data.get(name) ?? "");
    if (!this.form.elements.own.checked) this.values.quality = "";
    amend(playgroundAddress(this.bucket, this.key, this.values));
    this.make();
  }

  reset() {
    this.values = { ...Object.fromEntries(NAMES.map((name) => [name, ""])), ...DEFAULTS };
    amend(playgroundAddress(this.bucket, this.key));
    this.build();
    this.original();
    this.run();
  }

  async original() {
    try {
      this.source = await this.shown(this.before, "", null);
      this.writeSnippets();
      this.compare();
    } catch (error) {
      if (!isGone(error)) fill(this.before.canvas, make("p", { class: "problem", role: "alert" }, explain(error)));
    }
  }

  async run() {
    this.stopped?.abort();
    this.stopped = new AbortController();
    this.after.element.classList.add("working");
    this.writeSnippets();
    this.showLimit();
    try {
      this.result = await this.shown(this.after, this.values, this.stopped.signal);
      this.compare();
    } catch (error) {
      if (isGone(error)) return;
      this.result = null;
      this.after.facts.textContent = "";
      this.saving.textContent = "";
      fill(this.after.canvas, make("p", { class: "problem", role: "alert" }, explain(error)));
    }
    this.after.element.classList.remove("working");
  }

  /** Loads an image and shows it with its facts. @param {any} pane @param {any} values @param {AbortSignal | null} signal */
  async shown(pane, values, signal) {
    const started = performance.now();
    const answer = await load("GET", fileAddress(this.bucket, this.key, values), { signal });
    const blob = await answer.blob();
    const took = performance.now() - started;
    const image = make("img", { alt: "" });
    image.src = URL.createObjectURL(blob);
    const beganToDecode = performance.now();
    try {
      await image.decode();
    } catch {
      throw new Error("Your browser can't display this format.");
    } finally {
      URL.revokeObjectURL(image.src);
    }
    const decoded = performance.now() - beganToDecode;
    signal?.throwIfAborted();
    fill(pane.canvas, image);
    const type = (answer.headers.get("Content-Type") ?? "").replace("image/", "").toUpperCase();
    const skipped = answer.headers.get("X-Image-Transform")?.split("reason=")[1];
    pane.facts.textContent = [
      `${number(image.naturalWidth)} × ${number(image.naturalHeight)}`, type, bytes(blob.size), `loaded in ${number(Math.round(took))} ms`, `decoded in ${Math.max(1, Math.round(decoded))} ms`,
    ].join(" · ");
    return { bytes: blob.size, skipped, type, width: image.naturalWidth, height: image.naturalHeight };
  }

  /** Says that an image is never enlarged, if the chosen size is larger than the original. */
  showLimit() {
    const { width, height } = this.source ?? {};
    const ratio = Number(this.values.dpr) || 1;
    const isLarger = (/** @type {string} */ value, /** @type {number} */ most) => Number(value) * ratio > most;
    this.limit.hidden = !width || !(isLarger(this.values.width, width) || isLarger(this.values.height, height));
    const text = `Images are never enlarged: the original is ${number(width ?? 0)} × ${number(height ?? 0)}.`;
    if (!this.limit.hidden) this.limit.lastChild.textContent = text;
  }

  compare() {
    this.showLimit();
    if (!this.source || !this.result) return;
    const { skipped } = this.result;
    const part = this.result.bytes / this.source.bytes;
    const text = skipped ? `Original sent: the image exceeds the server's limit (${skipped}).`
      : part < 1 ? `${Math.round(100 * (1 - part))}% smaller, saves ${bytes(this.source.bytes - this.result.bytes)} per view`
        : part > 1 ? `${Math.round(100 * (part - 1))}% larger than the original` : "Same as the original";
    if (this.saving.textContent !== text) this.saving.textContent = text;
    say(text);
  }

  writeSnippets() {
    const set = Object.fromEntries(Object.entries(this.values).filter(([, value]) => value !== ""));
    const url = publicAddress(this.bucket, this.key, set);
    const html = snippetOf(set, (values) => publicAddress(this.bucket, this.key, values), this.source);
    fill(this.snippets, snippet("URL", url), snippet("HTML", html));
  }

  close() {
    this.stopped?.abort();
    this.make.cancel();
  }
}
