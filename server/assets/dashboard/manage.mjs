// The management API as functions.

import { query } from "./address.mjs";
import { call } from "./api.mjs";

/** @param {string} name */
const bucketPath = (name) => `/api/buckets/${encodeURIComponent(name)}`;
/** @param {string} bucket @param {string} [id] */
const webhookPath = (bucket, id) => `${bucketPath(bucket)}/webhooks${id === undefined ? "" : `/${encodeURIComponent(id)}`}`;
/** @param {string} kind @param {string} id */
const path = (kind, id) => `/api/${kind}/${encodeURIComponent(id)}`;

/** All of a list that comes in pages. @param {string} address @param {string} name of the list @param {Record<string, any>} [values] @returns {Promise<any[]>} */
async function all(address, name, values) {
  const found = [];
  let cursor = null;
  do {
    const page = await call("GET", `${address}${query({ limit: 1000, cursor, ...values })}`);
    found.push(...page[name]);
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

/** Of an account there are 1,000 at most. @param {string} [q] */
export const keys = (q) => all("/api/keys", "apiKeys", { q });
/** @param {any} body */
export const createKey = (body) => call("POST", "/api/keys", { body });
/** @param {string} id */
export const revokeKey = (id) => call("DELETE", path("keys", id));

/** @param {string} name @param {any} body */
export const editBucket = async (name, body) => (await call("PATCH", bucketPath(name), { body })).bucket;
/** @param {string} name */
export const deleteBucket = (name) => call("DELETE", `${bucketPath(name)}?force=true`);

/** @param {string} bucket */
export const webhooks = (bucket) => all(webhookPath(bucket), "webhooks");
/** @param {string} bucket @param {string} id */
export const webhook = async (bucket, id) => (await call("GET", webhookPath(bucket, id))).webhook;
/** @param {string} bucket @param {any} body */
export const createWebhook = (bucket, body) => call("POST", webhookPath(bucket), { body });
/** @param {string} bucket @param {string} id @param {any} body */
export const editWebhook = (bucket, id, body) => call("PATCH", webhookPath(bucket, id), { body });
/** @param {string} bucket @param {string} id */
export const deleteWebhook = (bucket, id) => call("DELETE", webhookPath(bucket, id));
/** @param {string} bucket @param {string} id */
export const testWebhook = (bucket, id) => call("POST", `${webhookPath(bucket, id)}/test`);
/** @param {string} bucket @param {string} id @param {string | null} cursor */
export const deadLetters = (bucket, id, cursor) => call("GET", `${webhookPath(bucket, id)}/dead-letters${query({ limit: 100, cursor })}`);
/** Of all, or of one event. @param {string} bucket @param {string} id @param {string} [eventId] */
export const retryDeadLetters = (bucket, id, eventId) => call("POST", `${webhookPath(bucket, id)}/dead-letters/retry${query({ eventId })}`);
/** @param {string} bucket @param {string} id @param {string} [eventId] */
export const forgetDeadLetters = (bucket, id, eventId) => call("DELETE", `${webhookPath(bucket, id)}/dead-letters${query({ eventId })}`);

/** @param {string} bucket @param {string} prefix @param {string | null} cursor @param {AbortSignal} [signal] */
export const deleted = (bucket, prefix, cursor, signal) => call("GET", `${bucketPath(bucket)}/deleted${query({ prefix, cursor, limit: 100 })}`, { signal });

/** @param {Record<string, any>} values */
export const uploadToken = (values) => call("GET", `/api/presigned-url${query(values)}`);
/** @param {string} bucket @param {any} body */
export const downloadLink = (bucket, body) => call("POST", `${bucketPath(bucket)}/download-links`, { body });
/** Counts the files that rules would delete at once. @param {string} bucket @param {any[]} lifecycle */
export const previewRules = (bucket, lifecycle) => call("POST", `${bucketPath(bucket)}/lifecycle/preview`, { body: { lifecycle } });
/** @param {string} bucket @param {any} body */
export const createLink = (bucket, body) => call("POST", `${bucketPath(bucket)}/links`, { body });
/** A page of the shared links of a bucket, newest first. @param {string} bucket @param {string | null} cursor @param {Record<string, any>} [values] */
export const links = (bucket, cursor, values) => call("GET", `${bucketPath(bucket)}/links${query({ limit: 50, cursor, ...values })}`);
/** @param {string} bucket @param {string} path */
export const describe = async (bucket, path) => (await call("GET", `${bucketPath(bucket)}/object${query({ path })}`)).object;
/** @param {string} bucket @param {string} path @param {any} body */
export const editObject = async (bucket, path, body) => (await call("PATCH", `${bucketPath(bucket)}/object${query({ path })}`, { body })).object;
/** @param {string} id @param {any} body */
export const editLink = (id, body) => call("PATCH", path("links", id), { body });
/** @param {string} id */
export const endLink = (id) => call("DELETE", path("links", id));
/** Prepares a zip archive of files and folders; returns the path of its URL. @param {string} bucket @param {string[]} paths */
export const prepareZip = async (bucket, paths) => new URL((await call("POST", `${bucketPath(bucket)}/zips`, { body: { paths } })).url).pathname;

export const ownAccount = async () => (await call("GET", "/api/account")).account;
/** @param {string} name */
export const renameSelf = async (name) => (await call("PATCH", "/api/account", { body: { name } })).account;
/** @param {string} current @param {string} wanted */
export const changePassword = (current, wanted) => call("PUT", "/-/password", { body: { current, new: wanted } });
export const sessions = async () => (await call("GET", "/-/sessions")).sessions;
/** @param {string} id */
export const endSession = (id) => call("DELETE", `/-/sessions/${encodeURIComponent(id)}`);
export const endSessions = () => call("DELETE", "/-/sessions");

/** A page of them: of those that are called so. @param {string | null} cursor @param {string} [q] @param {number} [limit] */
export const accounts = (cursor, q, limit = 100) => call("GET", `/api/accounts${query({ limit, cursor, q })}`);
/** @param {any} body */
export const createAccount = async (body) => (await call("POST", "/api/accounts", { body })).account;
/** @param {string} id @param {any} body */
export const editAccount = async (id, body) => (await call("PATCH", path("accounts", id), { body })).account;
/** @param {string} id */
export const invite = (id) => call("POST", `${path("accounts", id)}/invitations`);
export const sweep = () => call("POST", "/api/accounts/sweep");

/** Those of the account. @param {string} [q] */
export const organisations = (q) => all("/api/organisations", "organisations", { q });
/** Organisations that invite the account. @return {Promise<any[]>} */
export const membershipInvitations = async () => (await call("GET", "/api/organisations?limit=1")).invitations;
/** @param {string} id */
export const acceptMembership = (id) => call("POST", `${path("organisations", id)}/membership`);
/** @param {string} id */
export const declineMembership = (id) => call("DELETE", `${path("organisations", id)}/membership`);
/** @param {string} id */
export const organisation = async (id) => (await call("GET", path("organisations", id))).organisation;
/** @param {string} name */
export const createOrganisation = async (name) => (await call("POST", "/api/organisations", { body: { name } })).organisation;
/** @param {string} id @param {string} name */
export const renameOrganisation = (id, name) => call("PATCH", path("organisations", id), { body: { name } });
/** @param {string} id */
export const deleteOrganisation = (id) => call("DELETE", path("organisations", id));
/** @param {string} id @param {string} account @param {string} role */
export const putMember = (id, account, role) => call("POST", `${path("organisations", id)}/members`, { body: { account, role } });
/** @param {string} id @param {string} account */
export const removeMember = (id, account) => call("DELETE", `${path("organisations", id)}/members${query({ account })}`);

/** @param {AbortSignal} [signal] */
export async function usage(signal) {
  const first = await call("GET", "/api/usage?limit=1000", { signal });
  const { buckets, total } = first;
  for (let cursor = first.nextCursor; cursor;) {
    const page = await call("GET", `/api/usage${query({ limit: 1000, cursor })}`, { signal });
    buckets.push(...page.buckets);
    cursor = page.nextCursor;
  }
  return { buckets, total };
}
/** @param {Record<string, any>} values @param {AbortSignal} [signal] */
export const usageHistory = (values, signal) => call("GET", `/api/usage/history${query(values)}`, { signal });
/** @param {Record<string, any>} values */
export const auditLog = ({ log, ...values }) => call("GET", `/api/audit${log === "files" ? "/files" : ""}${query(values)}`);
export const storage = () => call("GET", "/api/storage");
export const serverSettings = () => call("GET", "/api/settings");
/** @param {number} limit @returns {Promise<any[]>} */
export const recentUploads = async (limit) => (await call("GET", `/api/recent-uploads?limit=${limit}`)).uploads;
/** @param {AbortSignal} [signal] */
export const jobs = async (signal) => (await call("GET", "/api/jobs?limit=100", { signal })).jobs;
