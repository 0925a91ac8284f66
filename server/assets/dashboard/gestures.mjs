// The pointer on the file list: clicks, the drag rectangle, dragging selected rows, and the long press of a finger.
//
// A click on a name or a thumbnail opens it, elsewhere on the row it selects the row alone; Ctrl or Cmd toggles, Shift
// extends from the last click without Shift. A press on a selected row or on a name starts a drag, any other press a
// rectangle. Escape cancels either and restores the selection.

import { make } from "./dom.mjs";

/** Pixels after which a press is a drag. */
const DRAG_PX = 4;
/** Pixels from the edge of the list within which a drag scrolls it. */
const EDGE_PX = 28;
/** Pixels that the list scrolls per frame at most. */
const SCROLL_PX_MAX = 36;
/** How long a finger presses to select. */
const HOLD_MS = 450;
const HOLD_PX = 10;
/** A lifted finger clicks within this time. */
const LIFT_MS = 80;

/** @typedef {{x: number, y: number}} Point */

export class Gestures {
  /** @param {import("./browser.mjs").Browser} view */
  constructor(view) {
    this.view = view;
    /** @type {any} the press that may become a drag */
    this.press = null;
    /** @type {any} the running rectangle or drag */
    this.running = null;
    this.isDone = false;
    this.frame = 0;
    this.hold = 0;
    this.pause = 0;
    /** The type of the last pointer: touch opens no context menu by a long press. */
    this.pointer = "mouse";
    const { element } = view.list;
    element.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.down(event));
    // A press with Shift would extend a text selection into the list.
    element.addEventListener("mousedown", (/** @type {MouseEvent} */ event) => { if (event.shiftKey) event.preventDefault(); });
    element.addEventListener("click", (/** @type {any} */ event) => this.click(event));
    element.addEventListener("dblclick", (/** @type {any} */ event) => {
      if (this.partOf(event) === "row" && view.list.indexOf(event) >= 0) view.open(view.list.indexOf(event));
    });
    this.move = (/** @type {PointerEvent} */ event) => this.moved(event);
    this.up = (/** @type {PointerEvent} */ event) => this.end(event.type === "pointerup");
    this.key = (/** @type {KeyboardEvent} */ event) => this.keyed(event);
  }

  /** The part of a row that an event hits. @param {any} event @returns {"tick" | "menu" | "name" | "row"} */
  partOf(event) {
    const { target } = event;
    if (target.closest(".tick") || (target.matches(".tile") && event.offsetX < 40 && event.offsetY < 40)) return "tick";
    if (target.closest(".dots")) return "menu";
    return target.closest(".row .name, .tile .name, .tile .picture") ? "name" : "row";
  }

  /** @param {any} event */
  click(event) {
    const { list, selection, rows } = this.view;
    if (this.isDone || event.target.closest(".head")) return;
    const index = list.indexOf(event);
    const entry = rows[index];
    if (!entry) {
      if (selection.size > 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey) this.view.clearSelection();
      return;
    }
    const part = this.partOf(event);
    if (part === "menu") return this.view.menuAt(index, event.target);
    const isTouch = event.pointerType === "touch" || event.pointerType === "pen";
    if (event.shiftKey) selection.reach(index, (at) => rows[at]?.key, event.ctrlKey || event.metaKey);
    else if (event.ctrlKey || event.metaKey || part === "tick" || (isTouch && selection.size > 0)) selection.toggle(entry.key, index);
    else if (isTouch || part === "name") {
      list.activate(index);
      return this.view.open(index);
    } else selection.only(entry.key, index);
    list.activate(index);
    this.view.selected();
  }

  /** @param {PointerEvent} event */
  down(event) {
    this.pointer = event.pointerType;
    const { list } = this.view;
    const target = /** @type {Element} */ (event.target);
    if (event.button !== 0 || this.running || target.closest(".head")) return;
    if (event.pointerType !== "mouse") return this.holdDown(event);
    // A press on the scroll bar is none on the list.
    if (target === list.scroller && event.offsetX >= list.scroller.clientWidth) return;
    const part = this.partOf(event);
    if (part === "menu" || part === "tick") return;
    this.press = { x: event.clientX, y: event.clientY, index: list.indexOf(event), part };
    document.addEventListener("pointermove", this.move);
    document.addEventListener("pointerup", this.up);
    document.addEventListener("pointercancel", this.up);
  }

  /** Selects the row that a finger rests on. @param {PointerEvent} event */
  holdDown(event) {
    const { list, selection, rows } = this.view;
    const index = list.indexOf(event);
    if (index < 0) return;
    const stop = () => {
      clearTimeout(this.hold);
      for (const type of ["pointerup", "pointercancel", "pointermove"]) document.removeEventListener(type, ended);
    };
    const ended = (/** @type {any} */ now) => {
      if (now.type === "pointermove" && Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) < HOLD_PX) return;
      stop();
    };
    for (const type of ["pointerup", "pointercancel", "pointermove"]) document.addEventListener(type, ended);
    clearTimeout(this.hold);
    this.hold = window.setTimeout(() => {
      stop();
      const entry = rows[index];
      if (!entry) return;
      selection.toggle(entry.key, index);
      list.activate(index);
      this.view.selected();
      // The finger is lifted later: that is no tap.
      document.addEventListener("pointerup", () => this.done(LIFT_MS), { once: true });
    }, HOLD_MS);
  }

  /** @param {PointerEvent} event */
  moved(event) {
    const point = { x: event.clientX, y: event.clientY };
    if (!this.running) {
      if (Math.hypot(point.x - this.press.x, point.y - this.press.y) < DRAG_PX) return;
      this.start();
    }
    this.running.pointer = point;
    this.running.isCopy = event.ctrlKey || event.altKey || event.metaKey || !this.view.may("move");
    this.running.isAdding ??= event.ctrlKey || event.metaKey || event.shiftKey;
    event.preventDefault();
    this.tick();
  }

  start() {
    const { list, selection, rows } = this.view;
    const { index, part } = this.press;
    const entry = rows[index];
    const before = { names: new Set(selection.names), anchor: selection.anchor };
    const isDrag = entry && (selection.has(entry.key) || part === "name") && this.view.may("upload");
    this.running = { before, from: list.pointAt(this.press.x, this.press.y), isDrag };
    if (isDrag) {
      if (!selection.has(entry.key)) {
        selection.only(entry.key, index);
        this.view.selected();
      }
      this.running.element = make("div", { class: "drag-badge", role: "status" });
    } else this.running.element = make("div", { class: "rectangle", "aria-hidden": "true" });
    document.body.append(this.running.element);
    document.documentElement.classList.toggle("dragging", Boolean(isDrag));
    document.addEventListener("keydown", this.key, { capture: true });
    document.addEventListener("keyup", this.key, { capture: true });
    const loop = () => {
      this.scrollEdge();
      this.frame = requestAnimationFrame(loop);
    };
    this.frame = requestAnimationFrame(loop);
  }

  /** Scrolls while the pointer is at an edge. */
  scrollEdge() {
    const { scroller } = this.view.list;
    const { pointer } = this.running;
    if (!pointer) return;
    const box = scroller.getBoundingClientRect();
    const over = pointer.y < box.top + EDGE_PX ? pointer.y - box.top - EDGE_PX : Math.max(0, pointer.y - box.bottom + EDGE_PX);
    if (over === 0) return;
    const before = scroller.scrollTop;
    scroller.scrollTop += Math.max(-SCROLL_PX_MAX, Math.min(SCROLL_PX_MAX, over / 2));
    if (scroller.scrollTop !== before) this.tick();
  }

  tick() {
    if (this.running.isDrag) this.dragOver();
    else this.stretch();
  }

  /** Selects what the rectangle touches. */
  stretch() {
    const { list, selection, rows } = this.view;
    const { before, from, pointer, isAdding, element } = this.running;
    const to = list.pointAt(pointer.x, pointer.y);
    const names = new Set(isAdding ? before.names : []);
    for (const index of list.touched(from, to)) if (rows[index]) names.add(rows[index].key);
    const origin = list.pointOf(from);
    const box = list.scroller.getBoundingClientRect();
    const clamp = (/** @type {number} */ value, /** @type {number} */ least, /** @type {number} */ most) => Math.max(least, Math.min(most, value));
    const [left, right] = [origin.x, pointer.x].sort((one, other) => one - other).map((x) => clamp(x, box.left, box.right));
    const [top, bottom] = [origin.y, pointer.y].sort((one, other) => one - other).map((y) => clamp(y, box.top, box.bottom));
    Object.assign(element.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
    const isSame = names.size === selection.names.size && [...names].every((name) => selection.names.has(name));
    if (isSame) return;
    selection.all(names);
    this.view.selected();
  }

  /** Shows what a drop would do. */
  dragOver() {
    const { pointer, element, isCopy } = this.running;
    const target = this.targetAt(pointer);
    if (this.running.target?.element !== target?.element) {
      this.running.target?.element.classList.remove("drop-target");
      target?.element.classList.add("drop-target");
    }
    this.running.target = target;
    const what = this.view.named(this.view.targets());
    const text = target ? `${isCopy ? "Copy" : "Move"} ${what} to ${target.name}` : what;
    if (element.textContent !== text) element.textContent = text;
    const left = Math.min(pointer.x + 14, innerWidth - element.offsetWidth - 8);
    element.style.transform = `translate(${Math.max(8, left)}px, ${Math.min(pointer.y + 16, innerHeight - 44)}px)`;
  }

  /** The folder under the pointer, unless it is being dragged or shown. @param {Point} point */
  targetAt(point) {
    const { list, rows, selection, folder, isSearch } = this.view;
    const under = document.elementFromPoint(point.x, point.y);
    const crumb = /** @type {any} */ (under?.closest(".crumbs a[data-folder]"));
    if (crumb && (isSearch || crumb.dataset.folder !== folder)) return { element: crumb, key: crumb.dataset.folder, name: crumb.textContent };
    const row = /** @type {any} */ (under?.closest(".viewport [data-index]"));
    if (!row || !list.element.contains(row)) return null;
    const entry = rows[Number(row.dataset.index)];
    return entry?.isFolder && !selection.has(entry.key) ? { element: row, key: entry.key, name: entry.name } : null;
  }

  /** @param {KeyboardEvent} event */
  keyed(event) {
    if (event.key === "Escape" && event.type === "keydown") {
      event.preventDefault();
      event.stopPropagation();
      this.end(false);
      clearTimeout(this.pause);
      // The button is still down: its release is no click.
      this.isDone = true;
      document.addEventListener("pointerup", () => this.done(), { once: true });
      return;
    }
    if (!["Control", "Alt", "Meta"].includes(event.key)) return;
    event.preventDefault();
    this.running.isCopy = event.type === "keydown";
    if (this.running.isDrag && this.running.pointer) this.dragOver();
  }

  /** Ends a press; what is dragged is dropped unless it was cancelled. @param {boolean} isDropped */
  end(isDropped) {
    document.removeEventListener("pointermove", this.move);
    document.removeEventListener("pointerup", this.up);
    document.removeEventListener("pointercancel", this.up);
    const { running, press } = this;
    this.running = this.press = null;
    if (!running) return;
    cancelAnimationFrame(this.frame);
    document.removeEventListener("keydown", this.key, { capture: true });
    document.removeEventListener("keyup", this.key, { capture: true });
    document.documentElement.classList.remove("dragging");
    running.element.remove();
    running.target?.element.classList.remove("drop-target");
    this.done();
    const { selection, list } = this.view;
    if (!isDropped) {
      selection.all(running.before.names);
      selection.anchor = running.before.anchor;
      return this.view.selected();
    }
    if (!running.isDrag) {
      if (press.index >= 0) selection.anchor = press.index;
      if (press.index >= 0) list.activate(press.index, { reveal: false });
      return;
    }
    if (running.target) this.view.moveInto(running.target.key, running.isCopy);
  }

  /** Ignores the click that follows a drag or a long press. @param {number} [ms] */
  done(ms = 0) {
    this.isDone = true;
    clearTimeout(this.pause);
    this.pause = window.setTimeout(() => { this.isDone = false; }, ms);
  }

  close() {
    clearTimeout(this.hold);
    if (this.running || this.press) this.end(false);
  }
}
