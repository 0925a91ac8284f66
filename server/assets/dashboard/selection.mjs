// The selected entries, by key. Pure: no elements, and an index only as the anchor of a range.

export class Selection {
  constructor() {
    /** @type {Set<string>} */
    this.names = new Set();
    this.anchor = 0;
  }

  get size() {
    return this.names.size;
  }

  /** @param {string} name */
  has(name) {
    return this.names.has(name);
  }

  clear() {
    this.names.clear();
  }

  /** Selects one entry only. @param {string} name @param {number} index */
  only(name, index) {
    this.names.clear();
    this.names.add(name);
    this.anchor = index;
  }

  /** Selects or deselects an entry. @param {string} name @param {number} index */
  toggle(name, index) {
    if (!this.names.delete(name)) this.names.add(name);
    this.anchor = index;
  }

  /** Selects the range from the anchor to an index, and nothing else unless it is added. @param {number} index @param {(index: number) => string | undefined} nameAt @param {boolean} [isAdded] */
  reach(index, nameAt, isAdded = false) {
    if (!isAdded) this.names.clear();
    const [first, last] = this.anchor < index ? [this.anchor, index] : [index, this.anchor];
    for (let at = first; at <= last; at += 1) {
      const name = nameAt(at);
      if (name !== undefined) this.names.add(name);
    }
  }

  /** @param {Iterable<string>} names */
  all(names) {
    this.names = new Set(names);
  }

  /** Deselects entries. @param {Iterable<string>} names */
  drop(names) {
    for (const name of names) this.names.delete(name);
  }
}
