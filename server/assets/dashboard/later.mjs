// Modules that come when they are needed, and the style sheet that goes with them.

import { make } from "./dom.mjs";

/** @type {Promise<any> | null} */
let styled = null;

/** Brings along the style, once. It runs with the number of the page's own one. */
function style() {
  styled ??= new Promise((done) => {
    const { nonce } = /** @type {HTMLLinkElement} */ (document.querySelector("link[rel=stylesheet]"));
    document.head.append(make("link", { rel: "stylesheet", nonce, href: new URL("./pages.css", import.meta.url).pathname, load: done, error: done }));
  });
  return styled;
}

/** A module, when it is there with its style. @template T @param {() => Promise<T>} load @returns {Promise<T>} */
export const bring = async (load) => (await Promise.all([load(), style()]))[0];
