// Modules that are loaded on demand, and their style sheet.

import { make } from "./dom.mjs";

/** @type {Promise<any> | null} */
let styled = null;

/** Loads the style sheet once, with the nonce of the page. */
function style() {
  styled ??= new Promise((done) => {
    const { nonce } = /** @type {HTMLLinkElement} */ (document.querySelector("link[rel=stylesheet]"));
    document.head.append(make("link", { rel: "stylesheet", nonce, href: new URL("./pages.css", import.meta.url).pathname, load: done, error: done }));
  });
  return styled;
}

/** A module, with its style sheet. @template T @param {() => Promise<T>} load @returns {Promise<T>} */
export const bring = async (load) => (await Promise.all([load(), style()]))[0];
