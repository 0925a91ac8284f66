// Users with accounts, signed in as in a browser: a session of the server, and its cookie.

import { base, options } from "./driver.mjs";

/** The password of all accounts. */
export const PASSWORD = "correct horse battery";

/** Sends JSON or a form without a key, as an anonymous client; with a cookie, as a page of the server. */
export async function send(method, address, body, cookie = null) {
  const headers = { Origin: new URL(address).origin };
  if (cookie) headers.Cookie = `${cookie.name}=${cookie.value}`;
  if (body === undefined || body instanceof FormData) return fetch(address, { method, headers, body });
  headers["Content-Type"] = "application/json";
  return fetch(address, { method, headers, body: JSON.stringify(body) });
}

/** The cookie of a response, in the format of a browser context. */
function cookieOf(answer, address) {
  const [first] = answer.headers.getSetCookie();
  if (!first) throw new Error(`no cookie came with ${answer.status} of ${address}`);
  const [name, value] = first.split(";")[0].split("=");
  return { name, value, domain: new URL(address).hostname, path: "/", httpOnly: /httponly/i.test(first), sameSite: /samesite=strict/i.test(first) ? "Strict" : "None" };
}

async function begun(address, body) {
  const answer = await send("POST", address, body);
  if (!answer.ok) throw new Error(`POST ${address}: ${answer.status} ${await answer.text()}`);
  return { cookie: cookieOf(answer, address), json: await answer.json() };
}

/** Signs in, and returns the cookie of the session. */
export const signIn = async (name, { password = PASSWORD, at = base } = {}) => (await begun(`${at}/-/session`, { name, password })).cookie;

let signedIn = null;

/** The session of the operator, which all tests share. */
export function operator() {
  const { name, password } = options.operator;
  signedIn ??= signIn(name, { password });
  return signedIn;
}

/** Sends a request with a session, to another server where one is given; returns the response's JSON. */
export async function asking(session, method, path, body, at = base) {
  const answer = await send(method, at + path, body, session);
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? {} : answer.json();
}

/** Sends a request as the operator; returns the response's JSON. */
export const asOperator = async (method, path, body) => asking(await operator(), method, path, body);

/** Creates an account without a password. Returns its id. */
export const account = async (name) => (await asOperator("POST", "/api/accounts", { name, plan: "Business" })).account.id;

/** A link for setting an account's password. */
export const invitation = async (account) => (await asOperator("POST", `/api/accounts/${account}/invitations`)).url;

/** Accepts an invitation, and returns the cookie of the session. */
export async function takeUp(link) {
  const { origin, hash } = new URL(link);
  return (await begun(`${origin}/-/invitation`, { token: hash.slice(1), password: PASSWORD })).cookie;
}

/** Creates an account that accepts its invitation; returns the cookie. */
export const newcomer = async (name) => takeUp(await invitation(await account(name)));

/** Sets up a server by its link: returns the cookie of the first account, and its key. */
export async function setUp(link, bucketName) {
  const { origin, hash } = new URL(link);
  const body = { token: hash.slice(1), name: "ann", password: PASSWORD, bucketName, access: "public" };
  const { cookie, json } = await begun(`${origin}/-/set-up`, body);
  return { cookie, key: json.key };
}
