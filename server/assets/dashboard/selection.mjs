// Which entries are chosen. Pure: names in, names out; an index is looked up when it is needed.

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

  /** Only this one. @param {string} name @param {number} index */
  only(name, index) {
    this.names.clear();
    this.names.add(name);
    this.anchor = index;
  }

  /** This one too, or no longer. @param {string} name @param {number} index */
  toggle(name, index) {
    if (!this.names.delete(name)) this.names.add(name);
    this.anchor = index;
  }

  /** All from the anchor to here, and nothing else. @param {number} index @param {(index: number) => string | undefined} nameAt */
  reach(index, nameAt) {
    this.names.clear();
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

  /** What is gone is chosen no more. @param {Iterable<string>} names */
  drop(names) {
    for (const name of names) this.names.delete(name);
  }
}
