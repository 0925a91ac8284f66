// The kind of a file by its name and media type: icon, preview, and the label in the Type column.

/** @typedef {"picture" | "vector" | "film" | "sound" | "pdf" | "text" | "archive" | "other"} Kind */

/** @type {Record<Exclude<Kind, "other">, string>} */
const EXTENSIONS = {
  picture: "jpg jpeg png gif webp avif bmp ico pbm pgm ppm pnm pam qoi",
  vector: "svg",
  film: "mp4 webm mov mkv m4v ogv",
  sound: "mp3 ogg oga wav flac m4a aac opus",
  pdf: "pdf",
  text: "txt md json js mjs ts css html htm xml csv tsv toml yaml yml ini conf log lua rs py c h cpp hpp go java sh sql php rb cfg vue jsx tsx lock",
  archive: "zip tar gz zst xz 7z rar bz2 tgz",
};

/** @type {Map<string, Kind>} */
const BY_EXTENSION = new Map(
  Object.entries(EXTENSIONS).flatMap(([kind, names]) => names.split(" ").map((name) => [name, /** @type {Kind} */ (kind)])),
);

/** @param {string} name @returns {Kind} */
export function kindOfName(name) {
  const at = name.lastIndexOf(".");
  return (at > 0 && BY_EXTENSION.get(name.slice(at + 1).toLowerCase())) || "other";
}

/** @param {string} type a media type @param {string} name @returns {Kind} */
export function kindOfType(type, name) {
  const essence = type.split(";")[0].trim().toLowerCase();
  if (essence === "image/svg+xml") return "vector";
  if (essence.startsWith("image/")) return "picture";
  if (essence.startsWith("video/")) return "film";
  if (essence.startsWith("audio/")) return "sound";
  if (essence === "application/pdf") return "pdf";
  if (essence.startsWith("text/") || /[/+](json|xml|yaml|javascript|toml|x-sh|sql)$/.test(essence)) return "text";
  const byName = kindOfName(name);
  return byName === "archive" || byName === "text" ? byName : "other";
}

/** Extensions that have a better-known name. @type {Record<string, string>} */
const LABELS = { JPG: "JPEG", TIF: "TIFF", HTM: "HTML", YML: "YAML" };

/** The label of a file in the Type column: its extension, or "File". @param {string} name */
export function typeLabel(name) {
  const at = name.lastIndexOf(".");
  const extension = at > 0 ? name.slice(at + 1).toUpperCase() : "";
  return /^[A-Z0-9]{1,6}$/.test(extension) ? LABELS[extension] ?? extension : "File";
}

/** Whether the server has to convert an image of this name before a browser can show it. @param {string} name */
export const needsConversion = (name) => /\.(p[bgpn]m|pam|qoi)$/i.test(name);

/** Whether the server can resize an image of this name. @param {string} name */
export const isPicture = (name) => kindOfName(name) === "picture";

/** @param {Kind} kind */
export const kindWord = (kind) =>
  ({ picture: "Image", vector: "Vector image", film: "Video", sound: "Audio", pdf: "PDF", text: "Text", archive: "Archive", other: "File" })[kind];
