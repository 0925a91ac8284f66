// Shows the view of the address. Links within the dashboard are followed without reloading the page.

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

/** Runs before another view is shown. */
let leave = () => {};
/** Sets what runs before another view is shown. Returns a function that removes it, unless the next view has replaced it. @param {() => void} work */
export function beforeLeaving(work) {
  leave = work;
  return () => { if (leave === work) leave = () => {}; };
}

export const here = () => read(location);

/** Goes to an address; the current one is shown again. @param {string} address */
export function go(address) {
  leave();
  if (address === location.pathname + location.search) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  show(here());
}

/** Goes to an address, replacing the current history entry. @param {string} address */
export function turn(address) {
  history.replaceState(null, "", address);
  show(here());
}

/** Replaces the address without a history entry, and without showing another view. @param {string} address */
export function amend(address) {
  if (address !== location.pathname + location.search) history.replaceState(history.state, "", address);
}
