// Files out of what is dropped, chosen or pasted: each with the folder that it lay in.

/** @typedef {{file: File, folder: string}} Found a file, and its folder below the target: "" or "a/b/" */

/**
 * Everything that was dropped, folders at any depth. To be called while the event is handled: entries are gone afterwards.
 * @param {DataTransfer} transfer @param {(found: Found[]) => void} add called with some files at a time
 */
export async function dropped(transfer, add) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const entries = items.map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry !== null && entry !== undefined);
  // A browser that gives no entries gives the files at least.
  if (entries.length === 0) return add([...transfer.files].map((file) => ({ file, folder: "" })));
  /** @type {{entry: any, folder: string}[]} */
  const folders = [];
  /** @type {Found[]} */
  let found = [];
  const take = async (/** @type {any} */ entry, /** @type {string} */ folder) => {
    if (entry.isDirectory) folders.push({ entry, folder: `${folder}${entry.name}/` });
    else {
      const file = await new Promise((done) => entry.file(done, () => done(null)));
      if (file) found.push({ file, folder });
    }
    if (found.length >= 500) {
      add(found);
      found = [];
    }
  };
  for (const entry of entries) await take(entry, "");
  for (const next of folders) {
    const reader = next.entry.createReader();
    for (;;) {
      // A reader gives some at a time, and an empty list at the end.
      const some = await new Promise((done) => reader.readEntries(done, () => done([])));
      if (some.length === 0) break;
      for (const entry of some) await take(entry, next.folder);
    }
  }
  add(found);
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
