// The HTML snippet of the playground.

/** Sizes in the HTML snippet, relative to the chosen size. */
const STEPS = [0.5, 1, 2];

/**
 * The HTML of a responsive image: every source has the chosen size and its multiples, with the same crop.
 * @param {Record<string, any>} chosen parameters that are set @param {(values: Record<string, any>) => string} address
 * @param {{width: number, height: number} | null} [source] the size of the original, which is never exceeded
 */
export function snippetOf({ dpr, format: _format, ...size }, address, source = null) {
  const attribute = (/** @type {string} */ text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const [width, height] = [Number(size.width) || 0, Number(size.height) || 0];
  const box = width || height ? { width, height } : { width: source?.width ?? 800, height: 0 };
  if (source && !height) box.width = Math.min(box.width, source.width);
  const fits = (/** @type {number} */ step) => step === 1 || !source || (box.width * step <= source.width && box.height * step <= source.height);
  const scaled = (/** @type {number} */ step, /** @type {Record<string, any>} */ changes) =>
    address({ ...size, width: box.width ? Math.round(box.width * step) : null, height: box.height ? Math.round(box.height * step) : null, ...changes });
  // Without a width, the width of the result is not known: density is.
  const mark = (/** @type {number} */ step) => (box.width ? `${Math.round(box.width * step)}w` : `${step}x`);
  const sizes = box.width ? ` sizes="${box.width}px"` : "";
  const sources = ["avif", "webp"].map((format) => {
    const set = STEPS.filter(fits).map((step) => `${scaled(step, { format })} ${mark(step)}`).join(",\n    ");
    return `  <source type="image/${format}"${sizes} srcset="${attribute(set)}">\n`;
  });
  const sides = [box.width && `width="${box.width}"`, box.height && `height="${box.height}"`].filter(Boolean).join(" ");
  const isWhole = box.width > 0 && box.height > 0 && ["cover", "fill"].includes(size.fit);
  return `<picture>\n${sources.join("")}  <img src="${attribute(scaled(1, { format: "jpg" }))}"${isWhole ? ` ${sides}` : ""} alt="" loading="lazy">\n</picture>`;
}
