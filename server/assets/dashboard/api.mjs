// The HTTP API as functions. A refused request throws an error with the reason and advice.

import { fileAddress, query } from "./address.mjs";

/** Advice for a refusal by its code, after the server's own message. */
const ADVICE = {
  missing_api_key: "Sign in again.",
  invalid_api_key: "Sign in again.",
  wrong_password: "Name and password are case-sensitive.",
  bucket_not_empty: "Empty it first.",
  organisation_not_empty: "Delete its buckets first.",
  last_owner: "The owning account can't leave or change role.",
  account_not_found: "Check the ID. Its owner finds it under Your account.",
  too_many_jobs: "Wait for a running job to finish.",
  job_ended: "The job has already ended.",
  version_not_found: "Its space has been reclaimed. Restore it from a backup.",
  log_too_large: "Narrow the search to a folder, or ask your operator to run trug history on the server.",
  account_suspended: "Contact the operator of this server.",
  plan_required: "Use the standard endpoint, or ask your operator for the Pro plan.",
  forbidden: "Ask the bucket's owner for a role that allows this.",
  bucket_not_found: "The bucket may have been deleted. Choose another one.",
  file_not_found: "The file may have been moved or deleted. Reload the folder.",
  already_exists: "Choose another name.",
  conflict: "Changed by someone else at the same time. Try again.",
  file_too_large: "See Max. file size in the bucket's settings.",
  type_not_allowed: "See Allowed file types in the bucket's settings.",
  quota_exceeded: "Delete files or ask for a larger quota.",
  no_space: "The server's disk is full. Delete files or contact your operator.",
  rate_limited: "Wait a moment and try again.",
  overloaded: "Try again in a moment.",
  read_only: "The server is read-only right now. Contact your operator.",
  remote_unavailable: "The remote store does not answer. Try again in a moment.",
  damaged: "Restore an older version or a backup.",
  undecodable: "The image can't be decoded. Download the original.",
  cancelled: "Search took too long. Search inside a folder or use a longer query.",
  unreachable: "Check that it is running, and try again.",
  offline: "Check your connection, and try again.",
  api_key_not_found: "The key was already revoked. Reload the page.",
  job_not_found: "The job has already ended. Reload the page.",
  webhook_not_found: "The webhook was already deleted. Reload the page.",
  session_not_found: "The session has already ended. Reload the page.",
  organisation_not_found: "The organisation may have been deleted, or you are no longer a member.",
  session_ended: "Sign in again.",
  set_up_done: "Sign in instead.",
  link_expired: "Ask for a new link.",
  link_ended: "Create a new link.",
  link_not_found: "Ask for a new link.",
  token_expired: "Create a new link.",
  token_used: "Create a new link.",
  token_not_found: "Create a new link.",
  token_revoked: "Create a new link.",
  token_in_use: "Another upload with this link is in progress. Wait for it to finish.",
  shutting_down: "Try again in a moment.",
  not_ready: "Try again in a moment.",
  request_timeout: "The connection may be too slow. Try again.",
  incomplete_body: "The upload was interrupted. Try again.",
  checksum_mismatch: "The data was altered in transit. Try again.",
  precondition_failed: "The file changed in the meantime. Reload the page.",
  too_large: "Upload fewer or smaller files at once.",
  zip_too_large: "Choose fewer files.",
  too_many_files: "Upload at most 100 files per request.",
  too_many_uploads: "Wait for running uploads to finish.",
  upload_expired: "The upload can't be resumed. Choose the file again.",
  upload_not_found: "The upload can't be resumed. Choose the file again.",
  upload_locked: "This file is being uploaded elsewhere, perhaps in another tab. Wait a moment.",
  wrong_offset: "The upload can't be resumed. Choose the file again.",
  cross_site: "Open the dashboard at its own URL.",
  wrong_host: "Open the dashboard at its own URL.",
};

/** Codes and messages of deliveries without a body, by status. */
const BARE = /** @type {Record<number, {code: string, error: string}>} */ ({
  401: { code: "missing_api_key", error: "This bucket is private. Sign in to open its files" },
  403: { code: "forbidden", error: "You don't have access to this private bucket" },
  404: { code: "file_not_found", error: "File not found" },
  429: { code: "rate_limited", error: "Too many requests" },
  503: { code: "overloaded", error: "Server busy" },
});

/** Why a request was not done. */
export class Refusal extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    super(body?.error || `The server responded with ${status}`);
    this.status = status;
    this.code = body?.code ?? "";
    this.body = body ?? {};
    /** Seconds to wait, where the server says so. */
    this.retryAfter = Number(body?.retryAfter) || 0;
  }

  /** The reason and the advice. */
  get advice() {
    const what = this.message.replace(/\.?$/, ".");
    const wait = this.code === "rate_limited" && this.retryAfter > 0 ? `Try again in ${this.retryAfter} s.` : null;
    const asks = this.code === "forbidden" && /operator/i.test(this.message) ? "Sign in as an operator or contact one." : null;
    const then = wait ?? asks ?? /** @type {any} */ (ADVICE)[this.code] ?? (this.body.requestId ? `Request ID for the server log: ${this.body.requestId}` : "");
    return `${what} ${then}`.trim();
  }
}

/** Any error as a sentence for people. @param {any} error */
export const explain = (error) => error?.advice ?? error?.message ?? String(error);

/** Whether a request was aborted. @param {any} error */
export const isGone = (error) => error?.name === "AbortError";

let onSignedOut = () => {};
/** Sets what happens when the session has ended. @param {() => void} work */
export function whenSignedOut(work) {
  onSignedOut = work;
}
/** Reports that the session has ended. */
export const signedOut = () => onSignedOut();

/**
 * @param {string} method @param {string} address
 * @param {{body?: any, signal?: AbortSignal, headers?: Record<string, string>, cache?: RequestCache}} [options]
 */
async function send(method, address, { body, signal, headers = {}, cache } = {}) {
  /** @type {any} */
  const init = { method, signal, headers: { ...headers }, cache, body: undefined };
  if (body !== undefined) {
    init.headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  try {
    return await fetch(address, init);
  } catch (error) {
    if (isGone(error)) throw error;
    throw new Refusal(0, navigator.onLine ? { code: "unreachable", error: "Can't reach the server" } : { code: "offline", error: "You are offline" });
  }
}

/** The JSON of a response; a refusal is thrown. @param {string} method @param {string} address @param {any} [options] */
export async function call(method, address, options) {
  const answer = await send(method, address, options);
  if (answer.ok) return answer.status === 204 ? {} : answer.json();
  const refusal = new Refusal(answer.status, await answer.json().catch(() => null));
  if (answer.status === 401 && address.startsWith("/api/")) onSignedOut();
  throw refusal;
}

/** The response of a delivery; a refusal is thrown. @param {string} method @param {string} address @param {any} [options] */
export async function load(method, address, options) {
  const answer = await send(method, address, options);
  if (answer.ok) return answer;
  throw method === "HEAD" ? bareRefusal(answer) : new Refusal(answer.status, await answer.json().catch(() => null));
}

/** @param {Response} answer */
const bareRefusal = (answer) => new Refusal(answer.status, { ...BARE[answer.status], retryAfter: answer.headers.get("Retry-After") });

export const session = () => call("GET", "/-/session");
/** @param {string} name @param {string} password */
export const signIn = (name, password) => call("POST", "/-/session", { body: { name, password } });
export const signOut = () => call("DELETE", "/-/session");
/** @param {any} body */
export const setUp = (body) => call("POST", "/-/set-up", { body });
/** @param {string} token */
export const checkSetUp = (token) => call("POST", "/-/set-up", { body: { token, check: true } });
/** Tells whose account an invitation is for. @param {string} token */
export const checkInvitation = (token) => call("POST", "/-/invitation", { body: { token, check: true } });
/** @param {string} token @param {string} password */
export const acceptInvitation = (token, password) => call("POST", "/-/invitation", { body: { token, password } });

/** All buckets that the account sees. */
export async function buckets() {
  const all = [];
  let cursor = null;
  do {
    const page = await call("GET", `/api/buckets${query({ limit: 1000, cursor })}`);
    all.push(...page.buckets);
    cursor = page.nextCursor;
  } while (cursor);
  return all;
}

/** A bucket, with the scopes of the account in it. @param {string} name @returns {Promise<{bucket: any, scopes?: string[]}>} */
export const bucketAndScopes = (name) => call("GET", `/api/buckets/${encodeURIComponent(name)}`);
/** @param {string} name */
export const bucket = async (name) => (await bucketAndScopes(name)).bucket;

/** @param {any} settings */
export const createBucket = (settings) => call("POST", "/api/buckets", { body: settings });

/** A page of a folder: folders first. @param {string} bucketName @param {string} prefix @param {string | null} continuationToken @param {AbortSignal} [signal] */
export const listFolder = (bucketName, prefix, continuationToken, signal) =>
  call("GET", `/api/list-objects${query({ bucketName, prefix, delimiter: "/", order: "folders", maxKeys: 1000, continuationToken })}`, { signal });

/** A page of the folders of a folder, with what each holds. @param {string} bucketName @param {string} prefix @param {string | null} cursor @param {AbortSignal} [signal] */
export const folderStats = (bucketName, prefix, cursor, signal) =>
  call("GET", `/api/buckets/${encodeURIComponent(bucketName)}/folders?prefix=${encodeURIComponent(prefix)}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}&limit=1000`, { signal });

/** The counters of a top-level folder. @param {string} bucketName @param {string} folder @param {AbortSignal} [signal] */
export async function countedFolder(bucketName, folder, signal) {
  let cursor = null;
  do {
    const page = await call("GET", `/api/buckets/${encodeURIComponent(bucketName)}/folders${query({ limit: 1000, cursor })}`, { signal });
    const found = page.folders.find((/** @type {any} */ it) => it.folder === folder);
    if (found) return found;
    cursor = page.nextCursor;
  } while (cursor);
  return null;
}

/** @param {string} bucketName @param {Record<string, any>} values @param {AbortSignal} [signal] */
export const search = (bucketName, values, signal) =>
  call("GET", `/api/search/${encodeURIComponent(bucketName)}${query(values)}`, { signal });

/** @param {string} bucketName @param {string} key */
export const removeFile = (bucketName, key) => call("DELETE", fileAddress(bucketName, key));
/** @param {string} bucketName @param {any} body */
export const move = (bucketName, body) => call("POST", `/api/buckets/${encodeURIComponent(bucketName)}/move`, { body });
/** @param {string} bucketName @param {any} body */
export const copyFile = (bucketName, body) => call("POST", `/api/buckets/${encodeURIComponent(bucketName)}/copy`, { body });
/** A page of all keys in a folder, however deep. @param {string} bucketName @param {string} prefix @param {string | null} continuationToken @param {number} [maxKeys] */
export const listKeys = (bucketName, prefix, continuationToken, maxKeys = 1000) =>
  call("GET", `/api/list-objects${query({ bucketName, prefix, maxKeys, continuationToken })}`);
/** @param {string} bucketName @param {any} body */
export const undelete = (bucketName, body) => call("POST", `/api/buckets/${encodeURIComponent(bucketName)}/undelete`, { body });
/** @param {any} body */
export const startJob = (body) => call("POST", "/api/jobs", { body });
/** @param {string} id */
export const job = (id) => call("GET", `/api/jobs/${encodeURIComponent(id)}`);
/** @param {string} id */
export const cancelJob = (id) => call("DELETE", `/api/jobs/${encodeURIComponent(id)}`);
/** A URL for one upload without a key. @param {string} bucketName @param {string} path */
export const uploadLink = (bucketName, path) => call("GET", `/api/presigned-url${query({ bucketName, path })}`);

/** The headers of a file, uncompressed: browsers request no compression together with a range, and servers ignore one of an unknown unit. @param {string} bucketName @param {string} key @param {RequestInit} options */
export const headOf = (bucketName, key, options) => load("HEAD", fileAddress(bucketName, key), { ...options, headers: { Range: "none=0-" } });

/** Whether a file has the name. @param {string} bucketName @param {string} key @param {AbortSignal} [signal] */
export async function exists(bucketName, key, signal) {
  const answer = await send("HEAD", fileAddress(bucketName, key), { signal, cache: "no-store" });
  if (answer.ok) return true;
  if (answer.status === 404) return false;
  throw bareRefusal(answer);
}
