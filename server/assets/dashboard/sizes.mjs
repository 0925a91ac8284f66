// Sizes as typed in a form: parsing and formatting.

/** Bytes of units. */
const FACTORS = { "": 1, b: 1, k: 1e3, kb: 1e3, m: 1e6, mb: 1e6, g: 1e9, gb: 1e9, t: 1e12, tb: 1e12, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, tib: 1024 ** 4 };

/** The bytes of a size such as "10 GB"; null for an empty text. @param {string} text @param {string} [what] subject of the error message */
export function sizeOf(text, what = "Size") {
  if (text.trim() === "") return null;
  const [, value, unit] = /^\s*([\d.,_ ]+?)\s*([a-z]*)\s*$/i.exec(text) ?? [];
  const factor = /** @type {any} */ (FACTORS)[unit?.toLowerCase() ?? "?"];
  const size = Math.round(Number(value?.replace(/[,_ ]/g, "")) * factor);
  if (!Number.isFinite(size)) throw new Error(`${what}: enter a number with a unit, such as 500 MB or 20 GB.`);
  return size;
}

/** A size as text that parses to the same bytes. @param {number | null | undefined} size */
export function sizeText(size) {
  if (size === null || size === undefined) return "";
  for (const [unit, factor] of /** @type {[string, number][]} */ ([["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]])) {
    if (size >= factor && (size * 1000) % factor === 0) return `${size / factor} ${unit}`;
  }
  return `${size} B`;
}
