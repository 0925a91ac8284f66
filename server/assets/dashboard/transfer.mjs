// Sends files: small files in a form, large files by tus, which resumes after an interruption or a reload.

import { Refusal } from "./api.mjs";
import { fileAddress, query } from "./address.mjs";
import { preferences } from "./dom.mjs";

/** A chunk of a large file: below the usual limits of proxies. */
const PIECE_BYTES = 64_000_000;
/** The server retains an unfinished upload for a day. */
const RETAINED_MS = 23 * 3_600_000;
const RETAINED_MAX = 200;

/** @typedef {import("./queue.mjs").Item} Item */

/**
 * Sends one request, with progress.
 * @param {string} method @param {string} address @param {any} body @param {Record<string, string>} headers
 * @param {AbortSignal} signal @param {(sent: number) => void} [progress]
 * @returns {Promise<XMLHttpRequest>}
 */
function send(method, address, body, headers, signal, progress) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    const end = (/** @type {() => void} */ work) => () => {
      signal.removeEventListener("abort", stop);
      work();
    };
    request.open(method, address);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    if (progress) request.upload.addEventListener("progress", (event) => progress(event.loaded));
    request.addEventListener("error", end(() => fail(new Refusal(0, { code: "unreachable", error: "Connection lost" }))));
    request.addEventListener("abort", end(() => fail(new DOMException("stopped", "AbortError"))));
    request.addEventListener("load", end(() => done(request)));
    signal.addEventListener("abort", stop);
    if (signal.aborted) return stop();
    request.send(body);
  });
}

/** @param {XMLHttpRequest} request */
function refusal(request) {
  let body = null;
  try {
    body = JSON.parse(request.responseText);
  } catch {
    // A proxy answered.
  }
  const error = new Refusal(request.status, body);
  error.retryAfter ||= Number(request.getResponseHeader("Retry-After")) || 0;
  return error;
}

/**
 * Sends small files in one form.
 * @param {Item[]} batch @param {boolean} overwrite @param {AbortSignal} signal @param {(part: number) => void} progress
 */
export async function sendForm(batch, overwrite, signal, progress) {
  const form = new FormData();
  let bytes = 0;
  for (const { file } of batch) {
    form.append("files", file, file.name);
    bytes += file.size;
  }
  const address = fileAddress(batch[0].bucket, batch[0].folder, { overwrite: overwrite || null });
  const request = await send("POST", address, form, {}, signal, (sent) => progress(Math.min(1, sent / Math.max(1, bytes))));
  if (request.status !== 200) throw refusal(request);
  const answer = JSON.parse(request.responseText);
  batch.forEach((item, index) => { item.key = answer.files[index].key; });
}

const TUS = { "Tus-Resumable": "1.0.0" };

/** @param {string} text */
const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

/** Identifies a file and its destination. @param {Item} item */
const fingerprint = ({ file, bucket, folder }) => [file.name, file.size, file.lastModified, bucket, folder].join("|");

/** Unfinished uploads, by fingerprint. @returns {Record<string, any>} */
export function unfinished() {
  const all = Object.entries(preferences.get("unfinished", {}));
  return Object.fromEntries(all.filter(([, it]) => Date.now() - /** @type {any} */ (it).at < RETAINED_MS).slice(-RETAINED_MAX));
}

/** @param {string} mark @param {any} it */
function remember(mark, it) {
  const all = unfinished();
  if (it === null) delete all[mark];
  else all[mark] = it;
  preferences.set("unfinished", all);
}

/** Discards unfinished uploads, here and on the server. */
export async function forgetUnfinished() {
  const all = Object.values(unfinished());
  preferences.set("unfinished", null);
  for (const it of all) await send("DELETE", it.address, null, TUS, new AbortController().signal).catch(() => {});
}

/**
 * Sends a large file in chunks, from its current offset.
 * @param {Item} item @param {boolean} overwrite @param {AbortSignal} signal @param {(sent: number) => void} progress
 */
export async function sendPieces(item, overwrite, signal, progress) {
  const mark = fingerprint(item);
  let { address, offset } = await begun(mark, signal) ?? await begin(item, mark, overwrite, signal);
  for (;;) {
    progress(offset);
    const piece = item.file.slice(offset, offset + PIECE_BYTES);
    const from = offset;
    const headers = { ...TUS, "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" };
    const request = await send("PATCH", address, piece, headers, signal, (sent) => progress(from + sent));
    if (request.status === 409 || request.status === 423) {
      // An earlier request is still running: the server reports the offset.
      throw Object.assign(refusal(request), { status: 503, retryAfter: 1 });
    }
    if (request.status === 404 || request.status === 410) {
      remember(mark, null);
      throw Object.assign(refusal(request), { status: 503, retryAfter: 1 });
    }
    if (request.status !== 204) throw refusal(request);
    offset = Number(request.getResponseHeader("Upload-Offset"));
    if (offset < item.file.size) continue;
    remember(mark, null);
    const url = request.getResponseHeader("X-Object-Url") ?? "";
    item.key = url ? decodeURIComponent(new URL(url).pathname.split("/").slice(2).join("/")) : "";
    return;
  }
}

/** An unfinished upload that the server still has. @param {string} mark @param {AbortSignal} signal */
async function begun(mark, signal) {
  const it = unfinished()[mark];
  if (!it) return null;
  const request = await send("HEAD", it.address, null, TUS, signal);
  if (request.status === 200) return { address: it.address, offset: Number(request.getResponseHeader("Upload-Offset")) };
  if (request.status >= 500 || request.status === 429) throw refusal(request);
  if (request.status === 423) return { address: it.address, offset: it.size };
  remember(mark, null);
  return null;
}

/** @param {Item} item @param {string} mark @param {boolean} overwrite @param {AbortSignal} signal */
async function begin(item, mark, overwrite, signal) {
  const { file, bucket, folder } = item;
  const named = { bucketName: bucket, path: folder, filename: file.name, filetype: file.type };
  const metadata = Object.entries(named).filter(([, value]) => value !== "").map(([name, value]) => `${name} ${base64(value)}`);
  const headers = { ...TUS, "Upload-Length": String(file.size), "Upload-Metadata": metadata.join(",") };
  const request = await send("POST", `/api/tus/${query({ overwrite: overwrite || null })}`, null, headers, signal);
  if (request.status !== 201) throw refusal(request);
  const address = new URL(request.getResponseHeader("Location") ?? "", new URL("/api/tus/", location.href)).pathname;
  remember(mark, { address, name: file.name, size: file.size, bucket, folder, at: Date.now() });
  return { address, offset: 0 };
}

/** Discards an unfinished file. @param {Item} item */
export async function giveUp(item) {
  const mark = fingerprint(item);
  const it = unfinished()[mark];
  if (!it) return;
  remember(mark, null);
  await send("DELETE", it.address, null, TUS, new AbortController().signal).catch(() => {});
}
