// The entries of a folder: pages of the listing as they arrive, the expected length where the server counts it, and the
// entries in the order that the view asks for. Entries are plain data; nothing here is drawn.

import { countedFolder, folderStats, isGone, listFolder } from "./api.mjs";
import { sorted, sortedInSlices } from "./order.mjs";

/** @typedef {{name: string, key: string, isFolder: boolean, size: number | null, time: string, count?: number, isExact?: boolean}} Entry */

/** Pages that are loaded without scrolling; later pages are loaded when the view comes near, or when it is sorted. */
const PAGES_AHEAD = 200;
/** Attempts against a busy server before the view reports it. */
const TRIES_QUIET = 3;
/** Longer lists are sorted in slices. */
const SORT_AT_ONCE_MAX = 5_000;

export class Listing {
  /**
   * @param {string} bucket @param {string} prefix
   * @param {(error: any, isRetrying?: boolean) => void} changed called after each change, with an error when loading failed or is retried
   */
  constructor(bucket, prefix, changed) {
    this.bucket = bucket;
    this.prefix = prefix;
    /** @type {Entry[]} in the order of the server: folders first, by bytes of the name */
    this.entries = [];
    this.isWhole = false;
    this.changed = changed;
    this.wanted = 0;
    this.folderCount = 0;
    this.fileBytes = 0;
    /** @type {Map<string, any>} what folders hold, by key */
    this.stats = new Map();
    this.isCounted = true;
    /** @type {{order: string, rows: Entry[]} | null} */
    this.sorted = null;
    /** @type {{order: string, stopped: AbortController} | null} */
    this.sorting = null;
    this.stopped = new AbortController();
  }

  /** Starts loading; `counted` is the file count of the bucket. @param {number | null} counted */
  async load(counted) {
    const depth = this.prefix.split("/").length - 1;
    if (depth === 0) this.counted(counted);
    else if (depth === 1) {
      // Only the scroll bar needs the count: the list works without.
      countedFolder(this.bucket, this.prefix, this.stopped.signal).then((found) => this.counted(found?.objectCount), () => {});
    }
    let cursor = null;
    try {
      for (let page = 1; ; page += 1) {
        const reply = await this.page(cursor);
        this.add(reply);
        cursor = reply.NextContinuationToken ?? null;
        this.isWhole = cursor === null;
        if (page === 1 && this.folderCount > 0) this.loadStats();
        this.changed(null);
        if (this.isWhole) return;
        while (page >= PAGES_AHEAD && this.wanted < this.entries.length) await this.more();
      }
    } catch (error) {
      if (!isGone(error)) this.changed(error);
    }
  }

  /** Loads what the folders hold; without it their cells stay empty. */
  async loadStats() {
    this.isCounted = this.stats.size > 0;
    const fresh = new Map();
    let cursor = null;
    try {
      do {
        const page = await folderStats(this.bucket, this.prefix, cursor, this.stopped.signal);
        for (const it of page.folders) fresh.set(it.folder, it);
        cursor = page.nextCursor;
        this.stats = cursor === null ? fresh : new Map([...this.stats, ...fresh]);
        this.isCounted = cursor === null && [...fresh.values()].every((it) => it.isExact);
        for (const entry of this.entries) this.count(entry);
        if (this.sorted && /size|time/.test(this.sorted.order)) this.sorted = null;
        this.restart();
        this.changed(null);
      } while (cursor !== null);
    } catch {
      // A key or a role that sees only a part of the bucket.
    }
  }

  /** Takes over what the folders held in an earlier listing, until it is counted again. @param {Listing | null} earlier */
  inherit(earlier) {
    if (earlier?.stats) this.stats = new Map(earlier.stats);
  }

  /** Adds to a folder what it holds. @param {Entry} entry */
  count(entry) {
    const found = entry.isFolder ? this.stats.get(entry.key) : undefined;
    if (found) Object.assign(entry, { size: found.totalBytes, count: found.objectCount, time: found.modifiedAt ?? "", isExact: found.isExact });
  }

  /** Bytes of the files and of the counted folders. */
  get bytes() {
    let sum = this.fileBytes;
    for (const it of this.stats.values()) sum += it.totalBytes;
    return sum;
  }

  /** Loads a page, and retries while the server is busy or unreachable. @param {string | null} cursor @returns {Promise<any>} */
  async page(cursor) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await listFolder(this.bucket, this.prefix, cursor, this.stopped.signal);
      } catch (/** @type {any} */ error) {
        const isBusy = [429, 503].includes(error.status) && !(error.retryAfter > 60);
        if (error.status !== 0 && !isBusy) throw error;
        if (tries === (isBusy ? TRIES_QUIET : 1)) this.changed(error, true);
        await new Promise((done) => setTimeout(done, 1000 * (error.retryAfter || 1)));
        this.stopped.signal.throwIfAborted();
      }
    }
  }

  /** Waits until entries beyond the loaded ones are wanted. */
  more() {
    return new Promise((done) => { this.proceed = done; });
  }

  /** Marks an entry as visible, so that the pages behind it are loaded. @param {number} index */
  want(index) {
    this.wanted = Math.max(this.wanted, index + 2000);
    if (this.wanted >= this.entries.length) this.proceed?.(undefined);
  }

  /** @param {number | null | undefined} counted */
  counted(counted) {
    this.total = counted ?? undefined;
    this.changed(null);
  }

  /** Rows of the list: loaded entries and, in a folder without subfolders, those that the server counted. */
  get length() {
    const isFlat = this.folderCount === 0 && this.entries.length > 0;
    if (this.isWhole || !isFlat || this.total === undefined) return this.entries.length;
    return Math.max(this.entries.length, this.total);
  }

  /** @param {any} reply */
  add(reply) {
    for (const { Prefix: key } of reply.CommonPrefixes) {
      this.folderCount += 1;
      /** @type {Entry} */
      const entry = { name: key.slice(this.prefix.length, -1), key, isFolder: true, size: null, time: "" };
      this.count(entry);
      this.entries.push(entry);
    }
    for (const { Key: key, Size: size, LastModified: time } of reply.Contents) {
      this.fileBytes += size;
      this.entries.push({ name: key.slice(this.prefix.length), key, isFolder: false, size, time });
    }
  }

  /**
   * The entries in an order such as `-size`. Null while the folder is not loaded to its end; a long list keeps its
   * previous order until the new one is ready. @param {string} order @returns {Entry[] | null}
   */
  ordered(order) {
    if (!this.isWhole) {
      // An explicit order needs every entry.
      if (order !== "") this.want(Infinity);
      return null;
    }
    if (this.sorted?.order === order) return this.sorted.rows;
    if (this.entries.length <= SORT_AT_ONCE_MAX) {
      this.sorted = { order, rows: sorted(this.entries, order) };
      return this.sorted.rows;
    }
    if (this.sorting?.order !== order) this.sort(order);
    return this.sorted?.rows ?? null;
  }

  /** Sorts a long list in slices. @param {string} order */
  async sort(order) {
    this.sorting?.stopped.abort();
    const stopped = new AbortController();
    this.sorting = { order, stopped };
    try {
      const rows = await sortedInSlices(this.entries, order, stopped.signal);
      if (stopped.signal.aborted) return;
      this.sorting = null;
      this.sorted = { order, rows };
      this.changed(null);
    } catch (error) {
      if (!isGone(error)) this.changed(error);
    }
  }

  /** Removes deleted entries. @param {Set<string>} keys */
  remove(keys) {
    const before = this.entries.length;
    const stays = (/** @type {Entry} */ entry) => !keys.has(entry.key);
    for (const entry of this.entries) {
      if (stays(entry)) continue;
      this.stats.delete(entry.key);
      if (entry.isFolder) this.folderCount -= 1;
      else this.fileBytes -= entry.size ?? 0;
    }
    this.entries = this.entries.filter(stays);
    if (this.sorted) this.sorted.rows = this.sorted.rows.filter(stays);
    this.restart();
    if (this.total !== undefined) this.total -= before - this.entries.length;
    this.changed(null);
  }

  /** Restarts a running sort after its entries changed. */
  restart() {
    if (this.sorting) this.sort(this.sorting.order);
  }

  stop() {
    this.stopped.abort();
    this.sorting?.stopped.abort();
    this.proceed?.(undefined);
  }
}
