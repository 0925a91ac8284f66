// URLs of views and files: building and parsing. The URL of a view holds its whole state.

/** @param {string} text */
const encoded = (text) => encodeURIComponent(text.toWellFormed?.() ?? text);
/** @param {string} key */
const path = (key) => key.split("/").map(encoded).join("/");

/** A query string of the values that are set. @param {Record<string, any>} [values] */
export function query(values = {}) {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = set.flatMap(([name, value]) => [value].flat().map((one) => `${name}=${encoded(String(one))}`)).join("&");
  return text === "" ? "" : `?${text}`;
}

/** The path of a file on this server. @param {string} bucket @param {string} key @param {Record<string, any>} [values] */
export const fileAddress = (bucket, key, values) => `/${encoded(bucket)}/${path(key)}${query(values)}`;

export const publicBase = () => document.documentElement.dataset.publicUrl || location.origin;

/** The public URL of a file. @param {string} bucket @param {string} key @param {Record<string, any>} [values] */
export const publicAddress = (bucket, key, values) => publicBase() + fileAddress(bucket, key, values);

/** The path of the view of a folder or, without a final slash, of a file in its folder. @param {string} bucket @param {string} [key] @param {Record<string, any>} [values] */
export const filesAddress = (bucket, key = "", values) => `/-/files/${encoded(bucket)}/${path(key)}${query(values)}`;

/** @param {string} bucket @param {Record<string, any>} values */
export const searchAddress = (bucket, values) => `/-/search/${encoded(bucket)}${query(values)}`;

/** @param {string} bucket @param {string} key @param {Record<string, any>} [values] */
export const playgroundAddress = (bucket, key, values) => `/-/playground/${encoded(bucket)}/${path(key)}${query(values)}`;

/**
 * The view, bucket, key and query of an address.
 * @param {{pathname: string, search: string, hash: string}} place
 */
export function read(place) {
  const [, , view = "", bucket = "", ...rest] = place.pathname.split("/");
  const values = new URLSearchParams(place.search);
  try {
    return { view, bucket: decodeURIComponent(bucket), key: decodeURIComponent(rest.join("/")), values, secret: place.hash.slice(1) };
  } catch {
    return { view: "nowhere", bucket: "", key: "", values, secret: "" };
  }
}

/** The folder of a key. @param {string} key */
export function folderOf(key) {
  const end = key.endsWith("/") ? key.length - 1 : key.length;
  return key.slice(0, key.lastIndexOf("/", end - 1) + 1);
}

/** The last path segment of a key, without a final slash. @param {string} key */
export const nameOf = (key) => key.slice(folderOf(key).length).replace(/\/$/, "");
