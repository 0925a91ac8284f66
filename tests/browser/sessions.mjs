// People with accounts, who sign in as people do: a session of the server, and its cookie for a browser.

import { base, options } from "./driver.mjs";

/** One that everybody here has. */
export const PASSWORD = "correct horse battery";

/** Sends JSON or a form without a key, as somebody who is not signed in; with a cookie, as a page of the server does. */
export async function send(method, address, body, cookie = null) {
  const headers = { Origin: new URL(address).origin };
  if (cookie) headers.Cookie = `${cookie.name}=${cookie.value}`;
  if (body === undefined || body instanceof FormData) return fetch(address, { method, headers, body });
  headers["Content-Type"] = "application/json";
  return fetch(address, { method, headers, body: JSON.stringify(body) });
}

/** The cookie that an answer sets, as a browser's context takes it. */
function cookieOf(answer, address) {
  const [first] = answer.headers.getSetCookie();
  if (!first) throw new Error(`no cookie came with ${answer.status} of ${address}`);
  const [name, value] = first.split(";")[0].split("=");
  return { name, value, domain: new URL(address).hostname, path: "/", httpOnly: /httponly/i.test(first), sameSite: /samesite=strict/i.test(first) ? "Strict" : "None" };
}

async function begun(address, body) {
  const answer = await send("POST", address, body);
  if (!answer.ok) throw new Error(`POST ${address}: ${answer.status} ${await answer.text()}`);
  return { cookie: cookieOf(answer, address), told: await answer.json() };
}

/** Signs in, and has the cookie of the session. */
export const signIn = async (name, { password = PASSWORD, at = base } = {}) => (await begun(`${at}/-/session`, { name, password })).cookie;

let signedIn = null;

/** The session of who operates the server, which all tests share. */
export function operator() {
  const { name, password } = options.operator;
  signedIn ??= signIn(name, { password });
  return signedIn;
}

/** Asks with a session, of another server where one is named; the answer's JSON. */
export async function asking(session, method, path, body, at = base) {
  const answer = await send(method, at + path, body, session);
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? {} : answer.json();
}

/** Asks as the operator; the answer's JSON. */
export const asOperator = async (method, path, body) => asking(await operator(), method, path, body);

/** Makes an account that nobody has signed in with. Its id. */
export const account = async (name) => (await asOperator("POST", "/api/accounts", { name, plan: "Business" })).account.id;

/** A link by which an account gets a password. */
export const invitation = async (account) => (await asOperator("POST", `/api/accounts/${account}/invitations`)).url;

/** Takes up an invitation, and has the cookie of the session. */
export async function takeUp(link) {
  const { origin, hash } = new URL(link);
  return (await begun(`${origin}/-/invitation`, { token: hash.slice(1), password: PASSWORD })).cookie;
}

/** Somebody new, who took up an invitation: the cookie. */
export const newcomer = async (name) => takeUp(await invitation(await account(name)));

/** Sets a server up by its link: the cookie of the first account, and its key. */
export async function setUp(link, bucketName) {
  const { origin, hash } = new URL(link);
  const body = { token: hash.slice(1), name: "ann", password: PASSWORD, bucketName, access: "public" };
  const { cookie, told } = await begun(`${origin}/-/set-up`, body);
  return { cookie, key: told.key };
}
