// Rows and tiles of the file list: their elements, and what each shows of an entry.

import { fileAddress } from "./address.mjs";
import { make } from "./dom.mjs";
import { isPicture, kindOfName, typeLabel } from "./kinds.mjs";
import { marked } from "./search.mjs";
import { bytes, count, day, moment, number } from "./text.mjs";

/** Height of a row: larger for touch. */
const ROW_HEIGHT = matchMedia("(pointer: coarse)").matches ? 52 : 42;
const TILE = { height: 188, width: 168, narrow: 150 };

/** @typedef {import("./browser.mjs").Browser} Browser */

/** The list: one entry a row. @param {Browser} view @returns {import("./viewport.mjs").Layout} */
export function lines(view) {
  const cell = (/** @type {string} */ name) => make("span", { class: name, role: "gridcell" });
  return {
    role: "grid",
    height: ROW_HEIGHT,
    make: () => make("div", { class: "row", role: "row" }, cell("tick"), cell("name"), cell("type"), cell("size"), cell("time"), cell("dots")),
    draw: (row, index) => {
      const entry = view.rows[index];
      const [, name, type, size, time, dots] = row.children;
      row.classList.toggle("pending", !entry);
      row.setAttribute("aria-selected", String(Boolean(entry) && view.selection.has(entry.key)));
      if (!entry) {
        name.textContent = type.textContent = size.textContent = time.textContent = "";
        name.dataset.kind = "";
        dots.removeAttribute("aria-label");
        return;
      }
      if (entry.matches) drawHit(view, name, entry);
      else name.textContent = entry.name;
      dots.setAttribute("aria-label", `Actions for ${entry.name}`);
      dots.setAttribute("aria-haspopup", "menu");
      name.title = entry.key;
      name.dataset.kind = entry.isFolder ? "folder" : kindOfName(entry.name);
      const unknown = entry.matches ? "" : "–";
      type.textContent = !entry.isFolder ? typeLabel(entry.name) : entry.count === undefined ? unknown : `${number(entry.count)}${entry.isExact ? "" : "+"} ${entry.count === 1 ? "file" : "files"}`;
      size.textContent = entry.size === null ? unknown : `${entry.isFolder && !entry.isExact ? "> " : ""}${bytes(entry.size)}`;
      time.textContent = entry.time ? day(entry.time) : unknown;
      time.title = entry.time ? moment(entry.time) : "";
    },
  };
}

/** The name of a search result, with its folder and the matches marked. @param {Browser} view @param {Element} name @param {any} entry */
function drawHit(view, name, entry) {
  const end = entry.isFolder ? entry.key.length - 1 : entry.key.length;
  const start = end - entry.name.length;
  const parent = start > view.folder.length ? make("small", null, marked(entry.key, entry.matches, view.folder.length, start)) : "";
  name.replaceChildren(make("span", null, marked(entry.key, entry.matches, start, end)), parent);
}

/** The grid: a thumbnail with its name. @param {Browser} view @returns {import("./viewport.mjs").Layout} */
export function tiles(view) {
  return {
    role: "listbox",
    height: TILE.height,
    cellWidth: matchMedia("(max-width: 30rem)").matches ? TILE.narrow : TILE.width,
    make: () => make("div", { class: "tile", role: "option" }, make("span", { class: "picture" }), make("span", { class: "name" })),
    draw: (tile, index) => {
      const entry = view.rows[index];
      const [picture, name] = tile.children;
      tile.classList.toggle("pending", !entry);
      const key = entry?.key ?? "";
      if (tile.dataset.key !== key || !entry) {
        picture.replaceChildren();
        picture.dataset.kind = !entry ? "" : entry.isFolder ? "folder" : kindOfName(entry.name);
        picture.removeAttribute("title");
        tile.dataset.key = key;
      }
      name.textContent = entry?.name ?? "";
      name.title = key;
      tile.setAttribute("aria-selected", String(Boolean(entry) && view.selection.has(key)));
    },
  };
}

/** Loads the thumbnails of the visible tiles. @param {Browser} view */
export function loadThumbnails(view) {
  for (const tile of view.list.shown.values()) {
    const entry = view.rows[Number(tile.dataset.index)];
    const place = tile.firstChild;
    if (!entry || entry.isFolder || place.firstChild || place.dataset.kind === "broken") continue;
    const isVector = kindOfName(entry.name) === "vector";
    if (!isPicture(entry.name) && !isVector) continue;
    const values = { width: isVector ? null : 320, height: isVector ? null : 240, format: isVector ? null : "webp", v: Date.parse(entry.time) || null };
    const image = make("img", { alt: "", decoding: "async", draggable: "false", error: () => broken(place, image), load: () => image.classList.add("here") });
    place.append(image);
    image.src = fileAddress(view.bucket, entry.key, values);
  }
}

/** Marks an image that has no thumbnail. @param {any} place @param {Element} image */
function broken(place, image) {
  image.remove();
  place.dataset.kind = "broken";
  place.title = "This image can't be displayed";
}

/** The counts of a folder, such as "7 folders, 3 files". @param {number} folders @param {number} files */
export function counted(folders, files) {
  if (folders === 0) return count(files, "file");
  return files === 0 ? count(folders, "folder") : `${count(folders, "folder")}, ${count(files, "file")}`;
}
