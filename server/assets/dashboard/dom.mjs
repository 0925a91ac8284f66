// Creates elements. Nothing here, and nothing built on it, turns text into markup.

/**
 * An element with attributes and children. Functions become listeners, true an empty attribute, null and false none;
 * strings among the children become text.
 * @param {string} name
 * @param {Record<string, any> | null} [attributes]
 * @param {...any} children
 * @returns {any}
 */
export function make(name, attributes, ...children) {
  const element = document.createElement(name);
  set(element, attributes ?? {});
  element.append(...flat(children));
  return element;
}

/** Sets attributes as `make` does. @param {Element} element @param {Record<string, any>} attributes */
export function set(element, attributes) {
  for (const [attribute, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(attribute, value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(attribute);
    else element.setAttribute(attribute, value === true ? "" : String(value));
  }
}

/** Replaces the children of an element. @param {Element} element @param {...any} children */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
}

/** @param {any[]} children */
function flat(children) {
  return children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);
}

/** A function that runs `work` after a pause in its calls. @param {number} ms @param {(...args: any[]) => void} work */
export function debounced(ms, work) {
  /** @type {any} */
  let timer = 0;
  const later = (/** @type {any[]} */ ...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => { timer = 0; work(...args); }, ms);
  };
  later.cancel = () => { clearTimeout(timer); timer = 0; };
  /** Runs pending work now. */
  later.now = () => { if (timer !== 0) { later.cancel(); work(); } };
  return later;
}

/** Preferences of this browser, in local storage; without storage every preference has its default. */
export const preferences = {
  /** @param {string} name @param {any} [otherwise] */
  get(name, otherwise = null) {
    try {
      const text = localStorage.getItem(`trug-${name}`);
      return text === null ? otherwise : JSON.parse(text);
    } catch {
      return otherwise;
    }
  },
  /** @param {string} name @param {any} value */
  set(name, value) {
    try {
      if (value === null) localStorage.removeItem(`trug-${name}`);
      else localStorage.setItem(`trug-${name}`, JSON.stringify(value));
    } catch {
      // Storage is full or disabled: the default applies next time.
    }
  },
};
