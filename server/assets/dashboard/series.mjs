// Values over time, of which some may be unknown: sums, and geometry for plots.

/** The smallest round number not below `value`: 1, 2, 2.5 or 5 times a power of ten. @param {number} value */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999999) ?? 10 * power;
}

/** The pieces of a line: indexes and values without a gap between them. @param {(number | null)[]} values */
export function pieces(values) {
  /** @type {[number, number][][]} */
  const found = [];
  let isOpen = false;
  values.forEach((value, at) => {
    if (value === null || value === undefined) isOpen = false;
    else if (isOpen) found.at(-1)?.push([at, value]);
    else {
      found.push([[at, value]]);
      isOpen = true;
    }
  });
  return found;
}

/** The sum of the known values of a field. @param {any[]} points @param {string} field */
export const sumOf = (points, field) => points.reduce((sum, point) => sum + (point[field] ?? 0), 0);
/** The last known value of a field, or null. @param {any[]} points @param {string} field */
export const lastOf = (points, field) => points.findLast((point) => point[field] !== null && point[field] !== undefined)?.[field] ?? null;
