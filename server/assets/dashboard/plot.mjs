// Line plots of values over time, with a reading at the pointer or by arrow keys, and the same values as a table.

import { fill, make } from "./dom.mjs";
import { table } from "./parts.mjs";
import { pieces, roundUp } from "./series.mjs";

const SVG = "http://www.w3.org/2000/svg";
/** Height of the drawing in its own units; it is stretched to fit. */
const HEIGHT = 100;

/** @typedef {{name: string, values: (number | null)[], class?: string}} Series one line; null where no value is known */

/** @param {string} name @param {Record<string, any>} attributes @param {...Node} children */
function draw(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, String(value));
  element.append(...children);
  return element;
}

/** A line without labels, next to the number that it illustrates. @param {(number | null)[]} values @param {string} [className] */
export function spark(values, className = "") {
  const top = Math.max(0, .../** @type {number[]} */ (values.filter((value) => value !== null))) || 1;
  const last = Math.max(1, values.length - 1);
  const paths = pieces(values).map((piece) => draw("path", { class: `line ${className}`, d: `M${piece.map(([at, value]) => `${at} ${(HEIGHT * (1 - value / top)).toFixed(1)}`).join(" L")}` }));
  return draw("svg", { class: "spark", viewBox: `0 0 ${last} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...paths);
}

/**
 * A plot with its heading and total.
 * @param {{title: string, sum: string, times: string[], series: Series[], format: (value: number) => string, time: (iso: string) => string}} what
 */
export function plot({ title, sum, times, series, format, time }) {
  const known = series.flatMap((one) => one.values).filter((value) => value !== null);
  const top = roundUp(Math.max(0, .../** @type {number[]} */ (known)));
  const last = Math.max(1, times.length - 1);
  const y = (/** @type {number} */ value) => HEIGHT - (value / top) * HEIGHT;
  const svg = draw("svg", { viewBox: `0 0 ${last} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const part of [0, 0.5, 1]) svg.append(draw("line", { class: "rule", x1: 0, x2: last, y1: HEIGHT * part, y2: HEIGHT * part }));
  series.forEach((one, number) => {
    for (const piece of pieces(one.values)) {
      // A piece of one point is drawn as a short line.
      const [[from, value]] = piece;
      const points = piece.length === 1 ? [[Math.max(0, from - 0.5), value], [Math.min(last, from + 0.5), value]] : piece;
      const line = points.map(([at, it]) => `${at} ${y(it).toFixed(2)}`).join(" L");
      if (number === 0) svg.append(draw("path", { class: `area ${one.class ?? ""}`, d: `M${points[0][0]} ${HEIGHT} L${line} L${points.at(-1)?.[0]} ${HEIGHT} Z` }));
      svg.append(draw("path", { class: `line ${one.class ?? ""}`, d: `M${line}` }));
    }
  });
  const mark = make("i", { class: "mark", hidden: true });
  const reading = make("output", { class: "reading" });
  const field = make("div", { class: "field-of-plot", tabindex: "0", role: "slider", "aria-label": `${title}: value at selected time`, "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": last, "aria-valuetext": "" }, svg, mark);
  let at = last;
  /** @param {number} index */
  const read = (index) => {
    at = Math.max(0, Math.min(times.length - 1, index));
    const words = series.map((one) => `${series.length > 1 ? `${one.name} ` : ""}${one.values[at] === null ? "no data" : format(/** @type {number} */ (one.values[at]))}`);
    const text = times.length === 0 ? "" : `${time(times[at])}: ${words.join(", ")}`;
    mark.hidden = times.length === 0;
    mark.style.left = `${(at / last) * 100}%`;
    field.setAttribute("aria-valuenow", String(at));
    field.setAttribute("aria-valuetext", text);
    reading.textContent = text;
  };
  const forget = () => {
    mark.hidden = true;
    reading.textContent = sum;
  };
  field.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    const box = field.getBoundingClientRect();
    read(Math.round(((event.clientX - box.left) / box.width) * last));
  });
  field.addEventListener("pointerleave", forget);
  field.addEventListener("blur", forget);
  field.addEventListener("focus", () => { if (field.matches(":focus-visible")) read(at); });
  field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const to = /** @type {Record<string, number>} */ ({ ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last, PageUp: at + 10, PageDown: at - 10 })[event.key];
    if (to === undefined) return;
    event.preventDefault();
    read(to);
  });
  read(last);
  forget();
  const rows = () => times.map((iso, index) => [time(iso), ...series.map((one) => (one.values[index] === null ? "No data" : format(/** @type {number} */ (one.values[index]))))]);
  const whole = make("details", null, make("summary", null, "Show as table"));
  whole.addEventListener("toggle", () => {
    if (whole.open && whole.children.length === 1) whole.append(make("div", { class: "long-table", tabindex: "0", role: "group", "aria-label": `${title}, as a table` }, table(title, [["Time"], ...series.map((one) => /** @type {[string, string]} */ ([one.name, "number"]))], rows().reverse()).element));
  });
  const scale = make("div", { class: "scale", "aria-hidden": "true" });
  fill(scale, make("span", null, format(top)), make("span", null, format(top / 2)), make("span", null, format(0)));
  return make("figure", { class: "plot" },
    make("figcaption", null, make("h3", null, title), reading,
      series.length > 1 && make("span", { class: "legend" }, series.map((one) => make("span", { class: one.class ?? "" }, one.name)))),
    make("div", { class: "drawing" }, scale, field,
      make("div", { class: "times", "aria-hidden": "true" }, times.length > 0 && [make("span", null, time(times[0])), times.length > 2 && make("span", null, time(times[Math.floor(last / 2)])), make("span", null, time(times[last] ?? times[0]))])),
    whole);
}
