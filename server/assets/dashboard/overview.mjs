// The parts of the home page: health, recent uploads, storage, and the last 24 hours.

import { standingBadge, STANDINGS } from "./account.mjs";
import { fileAddress, filesAddress, folderOf, nameOf } from "./address.mjs";
import { fill, make, preferences } from "./dom.mjs";
import { healthOf } from "./health.mjs";
import { icon } from "./icons.mjs";
import { isPicture, kindOfName } from "./kinds.mjs";
import { recentUploads, storage, usage, usageHistory } from "./manage.mjs";
import { sumOf } from "./series.mjs";
import { ago, bytes, moment, number } from "./text.mjs";

const DAY_MS = 86_400_000;
const UPLOADS_MAX = 8;
/** Buckets that the storage bar shows by name. */
const BUCKETS_MAX = 5;

/** The health strip of an operator. @param {any} it */
function health(it) {
  const strip = make("section", { class: "health", "aria-label": "Health" });
  const draw = () => {
    const { kind, text, action, isBackup } = healthOf(it);
    const fact = (/** @type {string} */ name, /** @type {string} */ value) => make("span", { class: "fact" }, name, " ", make("b", null, value));
    fill(strip, make("span", { class: `state ${kind}` }, make("i", { "aria-hidden": "true" }), text),
      action && make("a", { href: "/-/storage" }, action), isBackup && make("button", { type: "button", class: "link", "data-dismiss": true }, "Dismiss"),
      make("span", { class: "fact-list" }, it.lastBackup && fact("Backup", ago(it.lastBackup.at)), it.verifiedSince && fact("Verified", ago(it.verifiedSince)), it.disk && fact("Free", bytes(it.disk.freeBytes))),
      it.version && make("a", { class: "version faint", href: "/-/server" }, `trug ${it.version}`));
    strip.querySelector("[data-dismiss]")?.addEventListener("click", () => {
      preferences.set("backup-dismissed", Date.now());
      draw();
    });
  };
  draw();
  return strip;
}

/** A card with a heading and a link. @param {string} title @param {string} className @param {any} link @param {...any} contents */
function card(title, className, link, ...contents) {
  const id = `home-${className}`;
  return make("section", { class: `home-card ${className}`, "aria-labelledby": id }, make("header", null, make("h2", { id }, title), link), contents);
}

/** A recent upload. @param {any} it */
function upload(it) {
  const name = nameOf(it.key);
  const kind = kindOfName(name);
  const picture = make("span", { class: "picture", "data-kind": kind });
  if (isPicture(name) || kind === "vector") {
    const values = kind === "vector" ? {} : { width: 320, height: 214, fit: "cover", format: "webp", v: Date.parse(it.modifiedAt) };
    const image = make("img", { alt: "", loading: "lazy", decoding: "async", error: () => { image.remove(); picture.dataset.kind = "broken"; }, load: () => image.classList.add("here") });
    image.src = fileAddress(it.bucketName, it.key, values);
    picture.append(image);
  }
  return make("li", null, make("a", { class: "upload", href: filesAddress(it.bucketName, it.key), title: `${it.bucketName}/${it.key}, ${moment(it.modifiedAt)}` },
    picture, make("span", { class: "name" }, name), make("small", { class: "faint" }, `${it.bucketName} · ${ago(it.modifiedAt)}`)));
}

/** @param {any[] | null} uploads */
function recent(uploads) {
  const newest = uploads?.[0];
  const link = newest && make("a", { href: filesAddress(newest.bucketName, folderOf(newest.key), { sort: "-time" }) }, "Show folder");
  const none = make("p", { class: "faint" }, "Nothing uploaded yet. Open a bucket and drop files there, or ", make("a", { href: "/-/connect" }, "connect a client"), ".");
  return card("Recent uploads", "recent-uploads", link, uploads?.length ? make("ul", { class: "uploads-grid" }, uploads.map(upload)) : none);
}

/** Where the space is: the largest buckets and, for operators, the disk. @param {any[]} buckets @param {any} disk @param {any} account @param {any} used */
function space(buckets, disk, account, used) {
  const largest = [...buckets].filter((it) => it.totalBytes > 0).sort((one, other) => other.totalBytes - one.totalBytes);
  const named = largest.slice(0, BUCKETS_MAX);
  const rest = largest.slice(BUCKETS_MAX).reduce((sum, it) => sum + it.totalBytes, 0);
  const stored = largest.reduce((sum, it) => sum + it.totalBytes, 0);
  /** @type {[string, number, string, string?][]} class, bytes, name, address */
  const pieces = named.map((it, at) => [`piece-${at + 1}`, it.totalBytes, it.bucketName, filesAddress(it.bucketName)]);
  if (rest > 0) pieces.push(["piece-rest", rest, "Other buckets"]);
  const limit = account?.storageBytesMax;
  if (disk) {
    pieces.push(["piece-other", Math.max(0, disk.totalBytes - disk.freeBytes - stored), "Other files on disk"], ["piece-free", disk.freeBytes, "Free"]);
  } else if (limit) pieces.push(["piece-free", Math.max(0, limit - (used ?? stored)), `Left of ${bytes(limit)}`]);
  const total = pieces.reduce((sum, [, amount]) => sum + amount, 0) || 1;
  const bar = make("div", { class: "bar-of", role: "img", "aria-label": pieces.map(([, amount, name]) => `${name}: ${bytes(amount)}`).join(", ") }, pieces.map(([name, amount]) => {
    const piece = make("i", { class: name });
    piece.style.width = `${(amount / total) * 100}%`;
    return piece;
  }));
  const link = make("a", { href: disk ? "/-/storage" : "/-/usage" }, "Details");
  return card("Storage", "space", link, bar, make("ul", { class: "space-list" }, pieces.map(([name, amount, text, href]) =>
    make("li", null, make("i", { class: name, "aria-hidden": "true" }), href ? make("a", { href }, text) : make("span", null, text), make("span", { class: "faint" }, bytes(amount))))));
}

/** @param {any[]} points */
function lastDay(points) {
  const fact = (/** @type {string} */ value, /** @type {string} */ name) => make("div", null, make("dt", null, name), make("dd", null, value));
  return card("Last 24 hours", "last-day", make("a", { href: "/-/usage" }, "Details"), make("dl", null,
    fact(number(sumOf(points, "requests")), "Requests"), fact(bytes(sumOf(points, "bytesOut")), "Sent"), fact(number(sumOf(points, "errors")), "Server errors")));
}

/** What the home page shows above the buckets. @param {any} account @param {any[]} buckets */
export async function overview(account, buckets) {
  const isOperator = account?.role === "operator";
  const [history, state, uploads, used] = await Promise.all([
    usageHistory({ step: "hour", from: new Date(Date.now() - DAY_MS).toISOString() }).catch(() => null),
    isOperator ? storage().catch(() => null) : null,
    recentUploads(UPLOADS_MAX).catch(() => null),
    account?.storageBytesMax ? usage().then(({ total }) => total?.totalBytes ?? null, () => null) : null,
  ]);
  const standing = account?.standing && account.standing !== "good" && make("p", { class: "concern" }, icon("warning"), standingBadge(account.standing), ` ${STANDINGS[account.standing] ?? ""} `, make("a", { href: "/-/usage" }, "Usage"));
  return [
    state && health(state), standing,
    make("div", { class: "home-grid" }, recent(uploads), make("div", { class: "home-side" }, space(buckets, state?.disk, account, used), history && lastDay(history.points))),
  ].filter(Boolean);
}
