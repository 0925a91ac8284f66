// Files that were dropped, chosen or pasted, each with its folder.

/** @typedef {{file: File, folder: string}} Found a file, and its folder below the target: "" or "a/b/" */

/** Files handed on at a time. */
const TOGETHER_COUNT = 500;
/** Attempts to read a folder. */
const TRIES_MAX = 3;

/**
 * All dropped files, with folders at any depth. Call it in the event handler: entries are not available later.
 * @param {DataTransfer} transfer @param {AbortSignal} signal @param {(found: Found[]) => void} add called for each batch of files
 * @returns {Promise<string[]>} files and folders ("a/b/") that could not be read completely
 */
export async function dropped(transfer, signal, add) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const entries = items.map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry !== null && entry !== undefined);
  if (entries.length === 0) {
    // Browsers without entries still list the files.
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
 * Reads a folder, from its beginning again after a failure. Each entry is taken once.
 * @param {any} folder @param {(entry: any) => Promise<void>} take @returns {Promise<boolean>} whether it was read completely
 */
async function readThrough(folder, take) {
  const taken = new Set();
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const reader = folder.createReader();
    for (;;) {
      // A reader returns batches, and an empty one at the end.
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

/** The items whose files can't be read now. @template {{file: File}} T @param {T[]} all @returns {Promise<T[]>} */
export async function unreadable(all) {
  const looks = await Promise.allSettled(all.map(({ file }) => file.slice(0, 1).arrayBuffer()));
  return all.filter((_, index) => looks[index].status === "rejected");
}

/** The files of an input, with their folders if a folder was chosen. @param {FileList} files @returns {Found[]} */
export function chosen(files) {
  return [...files].map((file) => {
    const path = file.webkitRelativePath;
    return { file, folder: path.slice(0, path.lastIndexOf("/") + 1) };
  });
}

/** The files of the clipboard. Images without a name are named by the time. @param {DataTransfer | null} clipboard @returns {Found[]} */
export function pasted(clipboard) {
  const now = new Date().toISOString().slice(0, 19).replace("T", " ").replaceAll(":", "-");
  return [...(clipboard?.files ?? [])].map((file) => {
    if (!/^image\.\w+$/.test(file.name)) return { file, folder: "" };
    return { file: new File([file], `Pasted image ${now}.${file.name.split(".")[1]}`, { type: file.type }), folder: "" };
  });
}
