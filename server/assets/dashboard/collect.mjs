// Files out of what is dropped, chosen or pasted: each with the folder that it lay in.

/** @typedef {{file: File, folder: string}} Found a file, and its folder below the target: "" or "a/b/" */

/** So many files are handed on at a time. */
const TOGETHER_COUNT = 500;
/** A folder that cannot be read is tried so often. */
const TRIES_MAX = 3;

/**
 * Everything that was dropped, folders at any depth. To be called while the event is handled: entries are gone afterwards.
 * @param {DataTransfer} transfer @param {AbortSignal} signal @param {(found: Found[]) => void} add called with some files at a time
 * @returns {Promise<string[]>} files, and folders ("a/b/"), that could not be read, or not to their end
 */
export async function dropped(transfer, signal, add) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const entries = items.map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry !== null && entry !== undefined);
  if (entries.length === 0) {
    // A browser that gives no entries gives the files at least.
    add([...transfer.files].map((file) => ({ file, folder: "" })));
    return [];
  }
  /** @type {{entry: any, folder: string}[]} */
  const folders = [];
  /** @type {Found[]} */
  let found = [];
  /** @type {string[]} */
  const unread = [];
  const take = async (/** @type {any} */ entry, /** @type {string} */ folder) => {
    signal.throwIfAborted();
    if (entry.isDirectory) folders.push({ entry, folder: `${folder}${entry.name}/` });
    else {
      const file = await new Promise((done) => entry.file(done, () => done(null)));
      if (file) found.push({ file, folder });
      else unread.push(folder + entry.name);
    }
    if (found.length >= TOGETHER_COUNT) {
      add(found);
      found = [];
    }
  };
  for (const entry of entries) await take(entry, "");
  for (const { entry, folder } of folders) {
    if (!await readThrough(entry, (it) => take(it, folder))) unread.push(folder);
  }
  add(found);
  return unread;
}

/**
 * Reads a folder, from its beginning again where that fails. Each entry is taken once.
 * @param {any} folder @param {(entry: any) => Promise<void>} take @returns {Promise<boolean>} whether it was read to its end
 */
async function readThrough(folder, take) {
  const taken = new Set();
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const reader = folder.createReader();
    for (;;) {
      // A reader gives some at a time, and an empty list at the end.
      const some = await new Promise((done) => reader.readEntries(done, () => done(null)));
      if (some === null) break;
      if (some.length === 0) return true;
      for (const entry of some) {
        if (taken.has(entry.name)) continue;
        taken.add(entry.name);
        await take(entry);
      }
    }
  }
  return false;
}

/** Those whose files cannot be read any more. @template {{file: File}} T @param {T[]} all @returns {Promise<T[]>} */
export async function unreadable(all) {
  const looks = await Promise.allSettled(all.map(({ file }) => file.slice(0, 1).arrayBuffer()));
  return all.filter((_, index) => looks[index].status === "rejected");
}

/** Files of an input, which knows folders where one was chosen. @param {FileList} files @returns {Found[]} */
export function chosen(files) {
  return [...files].map((file) => {
    const path = file.webkitRelativePath;
    return { file, folder: path.slice(0, path.lastIndexOf("/") + 1) };
  });
}

/** Files of the clipboard. Pictures that have no name of their own are called by the time. @param {DataTransfer | null} clipboard @returns {Found[]} */
export function pasted(clipboard) {
  const now = new Date().toISOString().slice(0, 19).replace("T", " ").replaceAll(":", "-");
  return [...(clipboard?.files ?? [])].map((file) => {
    if (!/^image\.\w+$/.test(file.name)) return { file, folder: "" };
    return { file: new File([file], `Pasted ${now}.${file.name.split(".")[1]}`, { type: file.type }), folder: "" };
  });
}
