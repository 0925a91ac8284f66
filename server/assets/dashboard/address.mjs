// Addresses of views and of files, both ways. A view's address says everything that is needed to see it again.

/** @param {string} text */
const encoded = (text) => encodeURIComponent(text.toWellFormed?.() ?? text);
/** @param {string} key */
const path = (key) => key.split("/").map(encoded).join("/");

/** A query of what is set. @param {Record<string, any>} [values] */
export function query(values = {}) {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = set.flatMap(([name, value]) => [value].flat().map((one) => `${name}=${encoded(String(one))}`)).join("&");
  return text === "" ? "" : `?${text}`;
}

/** A file as this page loads it. @param {string} bucket @param {string} key @param {Record<string, any>} [values] */
export const fileAddress = (bucket, key, values) => `/${encoded(bucket)}/${path(key)}${query(values)}`;

/** A file as everybody gets it. @param {string} bucket @param {string} key @param {Record<string, any>} [values] */
export function publicAddress(bucket, key, values) {
  return `${document.documentElement.dataset.publicUrl || location.origin}${fileAddress(bucket, key, values)}`;
}

/** The view of a folder or, without a final slash, of a file in its folder. @param {string} bucket @param {string} [key] @param {Record<string, any>} [values] */
export const filesAddress = (bucket, key = "", values) => `/-/files/${encoded(bucket)}/${path(key)}${query(values)}`;

/** @param {string} bucket @param {Record<string, any>} values */
export const searchAddress = (bucket, values) => `/-/search/${encoded(bucket)}${query(values)}`;

/** @param {string} bucket @param {string} key @param {Record<string, any>} [values] */
export const playgroundAddress = (bucket, key, values) => `/-/playground/${encoded(bucket)}/${path(key)}${query(values)}`;

/**
 * What an address names: the view, bucket and key where it has them, and its query.
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

/** The folder that a key lies in. @param {string} key */
export function folderOf(key) {
  const end = key.endsWith("/") ? key.length - 1 : key.length;
  return key.slice(0, key.lastIndexOf("/", end - 1) + 1);
}

/** The last component of a key, without a final slash. @param {string} key */
export const nameOf = (key) => key.slice(folderOf(key).length).replace(/\/$/, "");
