// A virtual list: only the visible rows have elements, and the scroll bar is as long as the list.
//
// Elements are reused for other rows. Only the active row is in the tab order; it keeps its element while it has the
// focus, even out of view, so that the focus is never lost. Lists higher than the limit of browsers scroll in proportion.

import { make } from "./dom.mjs";

/** Maximum height of an element, in pixels. */
const PIXELS_MAX = 8_000_000;
/** Rows drawn beyond each edge. */
const OVERSCAN = 1;

/**
 * @typedef {object} Layout
 * @property {"grid" | "listbox" | "list"} role
 * @property {number} height of a row
 * @property {number} [cellWidth] minimum width of a cell, for several cells side by side
 * @property {() => HTMLElement} make creates an element without content
 * @property {(element: any, index: number) => void} draw fills an element, which may have shown another row
 */

export class Viewport {
  /** @param {string} label @param {Layout} layout @param {HTMLElement | null} [header] the row of column headers */
  constructor(label, layout, header = null) {
    this.label = label;
    this.header = header;
    this.spacer = make("div", { class: "spacer", role: "presentation" });
    this.scroller = make("div", { class: "scroller", role: "presentation" }, this.spacer);
    this.element = make("div", { class: "viewport", "aria-label": label }, header, this.scroller);
    this.count = 0;
    this.active = 0;
    /** @type {Map<number, any>} */
    this.shown = new Map();
    /** @type {any[]} */
    this.spare = [];
    this.frame = 0;
    /** @type {(first: number, last: number) => void} */
    this.seen = () => {};
    this.scroller.addEventListener("scroll", () => this.later(), { passive: true });
    this.observer = new ResizeObserver(() => this.later());
    this.observer.observe(this.scroller);
    this.layout = layout;
    this.use(layout);
  }

  /** Changes the layout. @param {Layout} layout */
  use(layout) {
    this.layout = layout;
    for (const element of this.shown.values()) element.remove();
    this.shown.clear();
    this.spare = [];
    this.element.setAttribute("role", layout.role);
    if (layout.role !== "list") this.element.setAttribute("aria-multiselectable", "true");
    this.element.classList.toggle("tiles", layout.cellWidth !== undefined);
    if (this.header) this.header.hidden = layout.role !== "grid";
    if (layout.role === "grid") this.element.setAttribute("aria-rowcount", this.count + 1);
    else this.element.removeAttribute("aria-rowcount");
    this.later();
  }

  /** @param {number} count */
  setCount(count) {
    this.count = count;
    this.active = Math.max(0, Math.min(this.active, count - 1));
    if (this.layout.role === "grid") this.element.setAttribute("aria-rowcount", count + 1);
    this.refresh();
  }

  /** Makes another index the active one because its entry moved there; what is visible moves along. @param {number} index @param {number} count */
  follow(index, count) {
    const rows = Math.floor(index / (this.columns ?? 1)) - Math.floor(this.active / (this.columns ?? 1));
    this.count = count;
    const { ratio, outer } = this.measure();
    const active = this.shown.get(this.active);
    const hadFocus = active?.contains(document.activeElement);
    this.active = index;
    this.spacer.style.height = `${outer}px`;
    this.scroller.scrollTop += (rows * this.layout.height) / ratio;
    this.setCount(count);
    if (!hadFocus) return;
    this.draw();
    this.shown.get(index)?.focus({ preventScroll: true });
  }

  /** Redraws the visible rows. */
  refresh() {
    for (const [index, element] of this.shown) {
      if (index < this.count) this.dress(element, index);
    }
    this.later();
  }

  later() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** Geometry for the current size. */
  measure() {
    const height = this.scroller.clientHeight;
    const width = this.scroller.clientWidth;
    const columns = this.layout.cellWidth ? Math.max(1, Math.floor(width / this.layout.cellWidth)) : 1;
    const total = Math.ceil(this.count / columns) * this.layout.height;
    const outer = Math.min(total, PIXELS_MAX);
    const ratio = total > outer && outer > height ? (total - height) / (outer - height) : 1;
    return { height, width, columns, total, outer, ratio };
  }

  draw() {
    const { height, width, columns, outer, ratio } = this.measure();
    if (height === 0) return;
    const rowHeight = this.layout.height;
    this.spacer.style.height = `${outer}px`;
    const scrolled = this.scroller.scrollTop;
    const top = scrolled * ratio;
    const firstRow = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
    const lastRow = Math.ceil((top + height) / rowHeight) + OVERSCAN;
    const first = firstRow * columns;
    const last = Math.min(this.count, lastRow * columns) - 1;
    for (const [index, element] of this.shown) {
      const isSeen = index >= first && index <= last;
      const isHeld = index === this.active && index < this.count && element.contains(document.activeElement);
      if (isSeen || isHeld) continue;
      this.shown.delete(index);
      element.remove();
      this.spare.push(element);
    }
    this.spare.length = Math.min(this.spare.length, 64);
    const cellWidth = width / columns;
    const place = (/** @type {number} */ index) => {
      let element = this.shown.get(index);
      const isNew = element === undefined;
      if (isNew) {
        element = this.spare.pop() ?? this.layout.make();
        this.shown.set(index, element);
      }
      const y = scrolled + Math.floor(index / columns) * rowHeight - top;
      element.style.transform = `translate(${(index % columns) * cellWidth}px, ${y}px)`;
      element.style.width = `${cellWidth}px`;
      if (isNew) {
        this.dress(element, index);
        this.spacer.append(element);
      }
    };
    for (let index = first; index <= last; index += 1) place(index);
    if (this.shown.has(this.active) && (this.active < first || this.active > last)) place(this.active);
    this.columns = columns;
    this.seen(first, last);
  }

  /** @param {any} element @param {number} index */
  dress(element, index) {
    element.tabIndex = index === this.active ? 0 : -1;
    element.dataset.index = index;
    if (this.layout.role === "grid") element.setAttribute("aria-rowindex", index + 2);
    else {
      element.setAttribute("aria-posinset", index + 1);
      element.setAttribute("aria-setsize", this.count);
    }
    this.layout.draw(element, index);
  }

  /** Makes a row the active one, scrolls to it and focuses it. @param {number} index @param {{focus?: boolean, reveal?: boolean}} [how] */
  activate(index, { focus = true, reveal = true } = {}) {
    if (this.count === 0) return;
    const before = this.shown.get(this.active);
    this.active = Math.max(0, Math.min(index, this.count - 1));
    if (before) before.tabIndex = -1;
    if (reveal) this.reveal(this.active);
    this.draw();
    const now = this.shown.get(this.active);
    if (!now) return;
    now.tabIndex = 0;
    if (focus) now.focus({ preventScroll: true });
  }

  /** Scrolls a row into view. @param {number} index */
  reveal(index) {
    const { height, columns, outer, ratio } = this.measure();
    this.spacer.style.height = `${outer}px`;
    const y = Math.floor(index / columns) * this.layout.height;
    const top = this.scroller.scrollTop * ratio;
    // The selection bar may cover the end of the list.
    const free = height - (Number.parseFloat(getComputedStyle(this.scroller).paddingBottom) || 0);
    if (y < top) this.scroller.scrollTop = y / ratio;
    else if (y + this.layout.height > top + free) this.scroller.scrollTop = (y + this.layout.height - free) / ratio;
  }

  /** A point of the window as a point of the content. @param {number} x @param {number} y */
  pointAt(x, y) {
    const box = this.scroller.getBoundingClientRect();
    return { x: x - box.left, y: y - box.top + this.scroller.scrollTop * this.measure().ratio };
  }

  /** A point of the content as a point of the window. @param {{x: number, y: number}} point */
  pointOf({ x, y }) {
    const box = this.scroller.getBoundingClientRect();
    return { x: x + box.left, y: y + box.top - this.scroller.scrollTop * this.measure().ratio };
  }

  /** Indexes of the rows or cells in a rectangle between two points of the content. @param {{x: number, y: number}} one @param {{x: number, y: number}} other */
  touched(one, other) {
    const { columns, width } = this.measure();
    const along = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ size) =>
      [Math.floor(Math.min(from, to) / size), Math.floor(Math.max(from, to) / size)];
    const [top, bottom] = along(one.y, other.y, this.layout.height);
    const [left, right] = along(one.x, other.x, width / columns);
    const found = [];
    for (let row = Math.max(0, top); row <= bottom && row * columns < this.count; row += 1) {
      for (let column = Math.max(0, left); column <= Math.min(right, columns - 1); column += 1) {
        if (row * columns + column < this.count) found.push(row * columns + column);
      }
    }
    return found;
  }

  /** Rows that fit into the view. */
  get pageRows() {
    return Math.max(1, Math.floor(this.scroller.clientHeight / this.layout.height) - 1);
  }

  /** The index of the row of an event, or -1. @param {Event} event */
  indexOf(event) {
    const row = /** @type {Element} */ (event.target).closest?.("[data-index]");
    return row && this.spacer.contains(row) ? Number(/** @type {any} */ (row).dataset.index) : -1;
  }

  /** The index that a key leads to from the active row, or -1 for other keys. @param {KeyboardEvent} event */
  step(event) {
    const columns = this.columns ?? 1;
    const at = this.active;
    const tiles = this.layout.cellWidth !== undefined;
    switch (event.key) {
      case "ArrowDown": return at + columns < this.count ? at + columns : tiles ? at : this.count - 1;
      case "ArrowUp": return at - columns >= 0 ? at - columns : tiles ? at : 0;
      case "ArrowRight": return tiles ? at + 1 : -1;
      case "ArrowLeft": return tiles ? Math.max(0, at - 1) : -1;
      case "Home": return 0;
      case "End": return this.count - 1;
      case "PageDown": return Math.min(this.count - 1, at + columns * this.pageRows);
      case "PageUp": return Math.max(0, at - columns * this.pageRows);
      default: return -1;
    }
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }
}
