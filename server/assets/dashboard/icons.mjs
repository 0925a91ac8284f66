// Icons as line drawings in a 24 by 24 view box.

const SVG = "http://www.w3.org/2000/svg";

/** @type {Record<string, string>} */
const PATHS = {
  trug: "M3 10h18l-1.6 7.2a3 3 0 0 1-2.9 2.3h-9a3 3 0 0 1-2.9-2.3L3 10Z M6 10c0-4 2.4-6 6-6s6 2 6 6 M8.5 10l.8 9.3 M15.5 10l-.8 9.3",
  folder: "M3 7a2 2 0 0 1 2-2h4l2 2.5h8a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V7Z",
  newFolder: "M3 7a2 2 0 0 1 2-2h4l2 2.5h8a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V7Z M12 10.8v5 M9.5 13.3h5",
  folderUp: "M3 7a2 2 0 0 1 2-2h4l2 2.5h8a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V7Z M12 16.3v-5.3 M9.6 13.2l2.4-2.4 2.4 2.4",
  bucket: "M4 6.5C4 5.1 7.6 4 12 4s8 1.1 8 2.5S16.4 9 12 9 4 7.9 4 6.5Z M4 6.5l1.9 11.2c.2 1.3 2.9 2.3 6.1 2.3s5.9-1 6.1-2.3L20 6.5",
  file: "M13 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V9l-6-6Z M13 3v6h6",
  picture: "M5 4h14a1.5 1.5 0 0 1 1.5 1.5v13A1.5 1.5 0 0 1 19 20H5a1.5 1.5 0 0 1-1.5-1.5v-13A1.5 1.5 0 0 1 5 4Z M4 17l5-5 4 4 2.5-2.5L20 18 M15.5 9.5h.01",
  upload: "M12 16V4 M7 9l5-5 5 5 M4 16v2.5A1.5 1.5 0 0 0 5.5 20h13a1.5 1.5 0 0 0 1.5-1.5V16",
  download: "M12 4v12 M7 11l5 5 5-5 M4 19.5h16",
  search: "M10.5 17.5a7 7 0 1 0 0-14 7 7 0 0 0 0 14Z M20.5 20.5l-5-5",
  list: "M8 6h12 M8 12h12 M8 18h12 M4 6h.01 M4 12h.01 M4 18h.01",
  grid: "M4 4h6v6H4V4Z M14 4h6v6h-6V4Z M4 14h6v6H4v-6Z M14 14h6v6h-6v-6Z",
  link: "M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.3l-1 1 M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1",
  copy: "M9 9h11v11H9V9Z M15 9V4H4v11h5",
  code: "M8.5 7l-5 5 5 5 M15.5 7l5 5-5 5",
  trash: "M4 7h16 M9 7V4.5h6V7 M6 7l1 12.5h10L18 7 M10 11v5 M14 11v5",
  pencil: "M4 20l1-4L16 5l3 3L8 19l-4 1Z",
  move: "M4 12h15 M14 7l5 5-5 5",
  close: "M6 6l12 12 M18 6L6 18",
  more: "M5 11.2a.8.8 0 1 0 0 1.6.8.8 0 0 0 0-1.6Z M12 11.2a.8.8 0 1 0 0 1.6.8.8 0 0 0 0-1.6Z M19 11.2a.8.8 0 1 0 0 1.6.8.8 0 0 0 0-1.6Z",
  dots: "M12 5.5h.01 M12 12h.01 M12 18.5h.01",
  menu: "M4 7h16 M4 12h16 M4 17h16",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Z M12 3v2 M12 19v2 M3 12h2 M19 12h2 M5.6 5.6 7 7 M17 17l1.4 1.4 M18.4 5.6 17 7 M7 17l-1.4 1.4",
  help: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7 M12 17h.01",
  out: "M10 4H5.5A1.5 1.5 0 0 0 4 5.5v13A1.5 1.5 0 0 0 5.5 20H10 M15 8l4 4-4 4 M19 12H9",
  left: "M14.5 6l-6 6 6 6",
  right: "M9.5 6l6 6-6 6",
  up: "M6 14.5l6-6 6 6",
  down: "M6 9.5l6 6 6-6",
  pause: "M8 5v14 M16 5v14",
  play: "M7 5l12 7-12 7V5Z",
  again: "M4 12a8 8 0 1 0 2.5-5.8L4 8.5 M4 4v4.5h4.5",
  check: "M5 12.5l4.5 4.5L19 7.5",
  lock: "M6 11h12v9H6v-9Z M8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  globe: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z M3 12h18 M12 3c2.5 2.7 3.5 5.7 3.5 9s-1 6.3-3.5 9c-2.5-2.7-3.5-5.7-3.5-9s1-6.3 3.5-9Z",
  sliders: "M4 7h9 M17 7h3 M4 17h3 M11 17h9 M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z M9 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z",
  plus: "M12 5v14 M5 12h14",
  minus: "M5 12h14",
  moon: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5Z",
  film: "M4 5h16v14H4V5Z M8 5v14 M16 5v14 M4 9.5h4 M4 14.5h4 M16 9.5h4 M16 14.5h4",
  sound: "M9 18V6l11-2v12 M9 18a3 3 0 1 1-6 0 3 3 0 0 1 6 0Z M20 16a3 3 0 1 1-6 0 3 3 0 0 1 6 0Z",
  text: "M13 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V9l-6-6Z M13 3v6h6 M9 13h6 M9 16.5h6",
  archive: "M4 4h16v5H4V4Z M5.5 9v11h13V9 M10 13h4",
  info: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z M12 11v5 M12 8h.01",
  key: "M14.5 14a5 5 0 1 0-4.9-4L4 15.6V20h4.4v-2.6H11v-2.6l1-1 M15.5 8.5h.01",
  chart: "M4 20V4 M4 20h16 M8 16v-4 M12 16V8 M16 16v-6",
  plug: "M9 3v5 M15 3v5 M6 8h12v3a6 6 0 0 1-12 0V8Z M12 17v4",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8Z M4.5 20.5a7.5 7.5 0 0 1 15 0",
  people: "M9 12a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7Z M2.5 20a6.5 6.5 0 0 1 13 0 M15.5 5.3a3.5 3.5 0 0 1 0 6.4 M18 14.5a6.5 6.5 0 0 1 3.5 5.5",
  disk: "M4 5h16v6H4V5Z M4 13h16v6H4v-6Z M7.5 8h.01 M7.5 16h.01",
  log: "M6 3h12v18H6V3Z M9 8h6 M9 12h6 M9 16h4",
  bell: "M6 17h12l-1.5-2.5V10a4.5 4.5 0 0 0-9 0v4.5L6 17Z M10.5 20h3",
  warning: "M12 4 2.5 20h19L12 4Z M12 10v4.5 M12 17.2h.01",
};

/** @param {string} name @param {string} [className] */
export function icon(name, className = "icon") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", className);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name] ?? PATHS.file);
  svg.append(path);
  return svg;
}

/** The favicon: the logo, or the progress of uploads. @param {number | null} part */
export function pageIcon(part) {
  const ring = 2 * Math.PI * 13;
  const body = part === null
    ? `<rect width="32" height="32" rx="8" fill="%232f6b4f"/><path transform="translate(4 4)" fill="none" stroke="white" stroke-width="2" stroke-linejoin="round" stroke-linecap="round" d="${PATHS.trug}"/>`
    : `<circle cx="16" cy="16" r="13" fill="none" stroke="%23888" stroke-opacity=".35" stroke-width="6"/><circle cx="16" cy="16" r="13" fill="none" stroke="%232f9b6f" stroke-width="6" stroke-dasharray="${ring * part} ${ring}" transform="rotate(-90 16 16)"/>`;
  return `data:image/svg+xml,<svg xmlns="${SVG}" viewBox="0 0 32 32">${body.replaceAll("#", "%23")}</svg>`;
}

/** An icon as a mask for a style sheet, which sets its colour. @param {string} name */
export const maskOf = (name) =>
  `url('data:image/svg+xml,<svg xmlns="${SVG}" viewBox="0 0 24 24"><path fill="none" stroke="black" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" d="${PATHS[name]}"/></svg>')`;
