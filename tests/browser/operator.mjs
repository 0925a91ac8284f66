// Somebody who signed in for real, with a cookie: the operator of the server that is tested.

import { base, open, options } from "./driver.mjs";

/** Nobody is told to the page by the driver. */
const NOT_TOLD = { signedIn: false, answer: false };

let cookie = null;

/** The cookie of the operator's session, which all tests share. */
async function signedIn() {
  if (cookie) return cookie;
  const { name, password } = options.operator;
  const answer = await fetch(`${base}/-/session`, { method: "POST", headers: { "Content-Type": "application/json", Origin: base }, body: JSON.stringify({ name, password }) });
  if (!answer.ok) throw new Error(`the operator is not let in: ${answer.status} ${await answer.text()}`);
  const [pair] = answer.headers.getSetCookie()[0].split(";");
  cookie = { name: pair.slice(0, pair.indexOf("=")), value: pair.slice(pair.indexOf("=") + 1) };
  return cookie;
}

/** A page of the operator, who has this bucket. */
export async function openAs(address, how = {}) {
  const { name, value } = await signedIn();
  const page = await open("about:blank", { session: NOT_TOLD, ...how });
  await page.context().addCookies([{ name, value, url: base, httpOnly: true, sameSite: "Strict" }]);
  await page.goto(address);
  return page;
}

/** A request of the API, as the operator; the answer's JSON. */
export async function ask(method, path, body) {
  const { name, value } = await signedIn();
  const isForm = body instanceof FormData;
  const headers = { Cookie: `${name}=${value}`, Origin: base, ...(isForm || body === undefined ? {} : { "Content-Type": "application/json" }) };
  const answer = await fetch(base + path, { method, headers, body: isForm || body === undefined ? body : JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? {} : answer.json();
}

/** Makes a bucket of the operator, unless it is there, and files in it. */
export async function fillBucket(bucketName, names = [], settings = {}) {
  const { buckets } = await ask("GET", "/api/buckets?limit=1000");
  if (!buckets.some((it) => it.bucketName === bucketName)) await ask("POST", "/api/buckets", { bucketName, ...settings });
  for (const name of names) {
    const form = new FormData();
    form.append("file", new File([`${name}\n`], name.split("/").at(-1)));
    await ask("POST", `/${bucketName}/${name.split("/").map(encodeURIComponent).join("/")}?overwrite=true`, form);
  }
}

/** Waits until what was asked of the server is so: a job is over, a file is gone. */
export async function until(look, what) {
  for (let tries = 0; tries < 200; tries += 1) {
    const found = await look();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`it never came to this: ${what}`);
}
