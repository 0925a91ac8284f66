// Which view is shown: the one of the address. Links inside are followed without loading the page again.

import { read } from "./address.mjs";

/** @type {(place: ReturnType<typeof read>) => void} */
let show = () => {};

/** Shows the view of the address, now and whenever it changes. @param {typeof show} work */
export function start(work) {
  show = work;
  addEventListener("popstate", () => show(here()));
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const link = /** @type {HTMLAnchorElement | null} */ (target.closest?.("a[href]"));
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute("download") || link.dataset.outside !== undefined) return;
    if (link.origin !== location.origin || !link.pathname.startsWith("/-/")) return;
    event.preventDefault();
    go(link.pathname + link.search + link.hash);
  });
  show(here());
}

/** What is done before another view is shown. */
let leave = () => {};
/** Answers with what takes it back; the next view may have said what it wants meanwhile. @param {() => void} work */
export function beforeLeaving(work) {
  leave = work;
  return () => { if (leave === work) leave = () => {}; };
}

export const here = () => read(location);

/** Goes to an address; one that is here already is shown anew. @param {string} address */
export function go(address) {
  leave();
  if (address === location.pathname + location.search) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  show(here());
}

/** Goes to an address in place of the one that is shown. @param {string} address */
export function turn(address) {
  history.replaceState(null, "", address);
  show(here());
}

/** Changes the address without a step in the history, and without showing anything. @param {string} address */
export function amend(address) {
  if (address !== location.pathname + location.search) history.replaceState(history.state, "", address);
}
