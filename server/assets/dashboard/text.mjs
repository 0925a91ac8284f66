// Numbers, sizes and times as text.

const NUMBERS = new Intl.NumberFormat("en");
const DAYS = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const MOMENTS = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const HOURS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** @param {number} value */
export const number = (value) => NUMBERS.format(value);

/** "1 file", "2,000 files". @param {number} value @param {string} one @param {string} [many] */
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** Bytes in three digits. @param {number} value */
export function bytes(value) {
  let unit = 0;
  let rest = value;
  while (rest >= 999.5 && unit < UNITS.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || rest >= 99.5 ? 0 : rest >= 9.95 ? 1 : 2;
  return `${rest.toFixed(digits)} ${UNITS[unit]}`;
}

/** The day; of today, the time. @param {string} iso */
export function day(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  return date.toDateString() === new Date().toDateString() ? `today, ${HOURS.format(date)}` : DAYS.format(date);
}

/** Day and time. @param {string} iso */
export function moment(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? "" : MOMENTS.format(date);
}

/** An age, such as "3 h ago". @param {string} iso */
export function ago(iso) {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return seconds < 30 * 86_400 ? `${Math.floor(seconds / 86_400)} d ago` : day(iso);
}

/** A duration. @param {number} seconds */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}
