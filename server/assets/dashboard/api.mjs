// The HTTP API as functions. A refusal is an error that says what was refused and what to do about it.

import { fileAddress, query } from "./address.mjs";

/** What to do about a refusal, by its code. The server's own sentence stands before it. */
const ADVICE = {
  missing_api_key: "Sign in again.",
  invalid_api_key: "Sign in again.",
  wrong_password: "Capitals count.",
  bucket_not_empty: "Empty it first.",
  organisation_not_empty: "Delete its buckets first.",
  last_owner: "The account that made it stays.",
  account_not_found: "Check the id: its holder finds it under Your account.",
  too_many_jobs: "Wait until some of the work under way is done.",
  job_ended: "It is over already.",
  version_not_found: "Its space may have been given back: a backup may have it.",
  log_too_large: "Look in a folder, or ask the operator to look on the machine.",
  account_suspended: "Ask the operator of this server why.",
  plan_required: "Ask the operator for the plan Pro, or use the basic address.",
  forbidden: "Ask whoever owns the bucket for a role that may do this.",
  bucket_not_found: "It may have been deleted or renamed: choose another one.",
  file_not_found: "It may have been moved or deleted: reload the folder.",
  already_exists: "Choose another name.",
  conflict: "Somebody else changed the same just now: try again.",
  file_too_large: "The settings of the bucket say how large a file may be.",
  type_not_allowed: "The settings of the bucket say which types it takes.",
  quota_exceeded: "Delete something, or ask for a larger quota.",
  no_space: "The server's disk is full: delete something, or tell the operator.",
  rate_limited: "Wait a moment, and try again.",
  overloaded: "Try again in a moment.",
  read_only: "The store takes no changes at the moment: tell the operator.",
  damaged: "The stored bytes are damaged: restore the file from a backup, or tell the operator.",
  undecodable: "The picture is broken: open the original.",
  cancelled: "Search inside a folder, or for more letters.",
  unreachable: "Check that it is running, and try again.",
  offline: "Check your connection, and try again.",
  api_key_not_found: "It was revoked already: load the page again.",
  job_not_found: "It is over already: load the page again.",
  webhook_not_found: "It was deleted already: load the page again.",
  session_not_found: "It has ended already: load the page again.",
  organisation_not_found: "It may have been deleted, or you do not belong to it any more.",
  session_ended: "Sign in again.",
  set_up_done: "Sign in instead.",
  link_expired: "Ask for another link.",
  link_not_found: "Ask for another link.",
  token_expired: "Make another link.",
  token_used: "Make another link.",
  token_not_found: "Make another link.",
  token_revoked: "Make another link.",
  token_in_use: "Wait until that upload is over.",
  shutting_down: "Try again in a moment.",
  not_ready: "Try again in a moment.",
  request_timeout: "The connection may be slow: try again.",
  incomplete_body: "It was cut off on its way: try again.",
  checksum_mismatch: "It was changed on its way: try again.",
  precondition_failed: "It was changed meanwhile: load the page again.",
  too_large: "Choose less at once.",
  too_many_files: "Choose fewer at once.",
  too_many_uploads: "Wait until some of the uploads under way are done.",
  upload_expired: "Choose the file again.",
  upload_not_found: "Choose the file again.",
  upload_locked: "It is being sent elsewhere, perhaps in another tab: wait a moment.",
  wrong_offset: "Choose the file again.",
  cross_site: "Open the dashboard at its own address.",
  wrong_host: "Open the dashboard at its own address.",
};

/** What a refusal of a delivery means whose answer has no body, by its status. */
const BARE = /** @type {Record<number, {code: string, error: string}>} */ ({
  401: { code: "missing_api_key", error: "The bucket is private, and you are not signed in" },
  403: { code: "forbidden", error: "The bucket is private, and you have no role in it" },
  404: { code: "file_not_found", error: "The file is not here" },
  429: { code: "rate_limited", error: "That was too much at once" },
  503: { code: "overloaded", error: "The server is busy" },
});

/** Why a request was not done. */
export class Refusal extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    super(body?.error || `The server answered ${status}`);
    this.status = status;
    this.code = body?.code ?? "";
    this.body = body ?? {};
    /** Seconds to wait, where the server says so. */
    this.retryAfter = Number(body?.retryAfter) || 0;
  }

  /** What was refused, and what to do. */
  get advice() {
    const what = this.message.replace(/\.?$/, ".");
    const wait = this.code === "rate_limited" && this.retryAfter > 0 ? `Try again in ${this.retryAfter} s.` : null;
    const asks = this.code === "forbidden" && /operator/i.test(this.message) ? "Sign in as one, or ask them." : null;
    const then = wait ?? asks ?? /** @type {any} */ (ADVICE)[this.code] ?? (this.body.requestId ? `The server's log knows more under ${this.body.requestId}.` : "");
    return `${what} ${then}`.trim();
  }
}

/** Any error as a sentence for people. @param {any} error */
export const explain = (error) => error?.advice ?? error?.message ?? String(error);

/** Whether a request ended because nobody wants its answer any more. @param {any} error */
export const isGone = (error) => error?.name === "AbortError";

let onSignedOut = () => {};
/** Says what happens when the server knows us no more. @param {() => void} work */
export function whenSignedOut(work) {
  onSignedOut = work;
}
/** Tells that the server knows us no more. */
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
    throw new Refusal(0, navigator.onLine ? { code: "unreachable", error: "The server cannot be reached" } : { code: "offline", error: "You are offline" });
  }
}

/** The JSON of an answer; a refusal is thrown. @param {string} method @param {string} address @param {any} [options] */
export async function call(method, address, options) {
  const answer = await send(method, address, options);
  if (answer.ok) return answer.status === 204 ? {} : answer.json();
  const refusal = new Refusal(answer.status, await answer.json().catch(() => null));
  if (answer.status === 401 && address.startsWith("/api/")) onSignedOut();
  throw refusal;
}

/** The answer of a delivery, as it is; a refusal is thrown. @param {string} method @param {string} address @param {any} [options] */
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

/** @param {string} name */
export const bucket = async (name) => (await call("GET", `/api/buckets/${encodeURIComponent(name)}`)).bucket;

/** @param {any} settings */
export const createBucket = (settings) => call("POST", "/api/buckets", { body: settings });

/** A page of a folder: folders first. @param {string} bucketName @param {string} prefix @param {string | null} continuationToken @param {AbortSignal} [signal] */
export const listFolder = (bucketName, prefix, continuationToken, signal) =>
  call("GET", `/api/list-objects${query({ bucketName, prefix, delimiter: "/", order: "folders", maxKeys: 1000, continuationToken })}`, { signal });

/** What lies below a top-level folder, as counted. @param {string} bucketName @param {string} folder @param {AbortSignal} [signal] */
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
export const undelete = (bucketName, body) => call("POST", `/api/buckets/${encodeURIComponent(bucketName)}/undelete`, { body });
/** @param {any} body */
export const startJob = (body) => call("POST", "/api/jobs", { body });
/** @param {string} id */
export const job = (id) => call("GET", `/api/jobs/${encodeURIComponent(id)}`);
/** @param {string} id */
export const cancelJob = (id) => call("DELETE", `/api/jobs/${encodeURIComponent(id)}`);
/** An address to which somebody without a key uploads once. @param {string} bucketName @param {string} path */
export const uploadLink = (bucketName, path) => call("GET", `/api/presigned-url${query({ bucketName, path })}`);

/** Whether a file has the name. @param {string} bucketName @param {string} key @param {AbortSignal} [signal] */
export async function exists(bucketName, key, signal) {
  const answer = await send("HEAD", fileAddress(bucketName, key), { signal, cache: "no-store" });
  if (answer.ok) return true;
  if (answer.status === 404) return false;
  throw bareRefusal(answer);
}
