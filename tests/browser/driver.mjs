// A browser, and pages in it that record unexpected events: injected scripts, policy violations, errors.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const options = JSON.parse(process.env.TRUG_BROWSER_OPTIONS);
export const { base, key } = options;

/** Time-out for the appearance of something: a busy machine is slow, and no failure. */
export const PATIENCE_MS = 120_000 * Number(options.slow ?? 1);
/** Length of the output for a page of a failed test: visible text, and the last of its messages and requests. */
const TEXT_MAX = 3_000;
const LINES_MAX = 15;
/** Prefix of the page warnings about policy violations. */
const POLICY_VIOLATION = "policy violation:";

/** Address requested by hostile scripts, so that they are detected where they may not log. */
export const BEACON = "/ran";

/** A host name of another site that leads to this machine. */
export const FOREIGN = "rebound.example";

let browser = null;
/** The cookie of ann, who is signed in unless another session is given. */
let ann = null;
/** The pages of the running test. */
const running = new AsyncLocalStorage();

/** Starts the browser. The session is the default of opened pages. */
export async function launch(session) {
  ann = session;
  browser = await chromium.launch({
    executablePath: options.chromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
      `--host-resolver-rules=MAP ${FOREIGN} 127.0.0.1`],
  });
}

export const quit = () => browser.close();

/**
 * Opens a page signed in by the cookie of a session; `null` is anonymous. `at` is another server's address.
 * @param {{session?: any, at?: string, context?: any}} [how]
 */
export async function open(address = "/-/", { session = ann, at = base, ...context } = {}) {
  const around = await browser.newContext({ baseURL: at, viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...context });
  around.setDefaultTimeout(PATIENCE_MS);
  if (session?.name) await around.addCookies([session]);
  await around.grantPermissions(["clipboard-read", "clipboard-write"], { origin: at });
  const page = await around.newPage();
  watch(page);
  running.getStore()?.add(page);
  await page.addInitScript((prefix) => {
    document.addEventListener("securitypolicyviolation", (event) => console.warn(`${prefix} ${event.effectiveDirective} ${event.blockedURI}`));
  }, POLICY_VIOLATION);
  if (options.slow) {
    const client = await around.newCDPSession(page);
    await client.send("Emulation.setCPUThrottlingRate", { rate: Number(options.slow) });
  }
  if (options.assets) await page.route("**/-/assets/**", (route) => route.fulfill({ path: `${options.assets}/${route.request().url().split("/").at(-1)}` }));
  await page.goto(address);
  return page;
}

/** Records the messages, requests and foreign scripts of a page. */
function watch(page) {
  Object.assign(page, { faults: [], executed: [], messages: [], answers: [] });
  page.on("pageerror", (error) => page.faults.push(`error: ${error.message}`));
  page.on("dialog", async (dialog) => {
    if (dialog.type() === "beforeunload") return dialog.accept();
    page.executed.push(`${dialog.type()}: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on("console", (message) => {
    const text = message.text();
    page.messages.push(text);
    if (text.startsWith(POLICY_VIOLATION) || /Content Security Policy|Trusted|violates/i.test(text)) page.faults.push(text);
  });
  page.on("request", (request) => { if (new URL(request.url()).pathname === BEACON) page.executed.push(`a script of ${request.frame().url()}`); });
  const record = (request, outcome) => page.answers.push(`${request.method()} ${new URL(request.url()).pathname}: ${outcome}`);
  page.on("response", (response) => {
    if (!response.url().includes("/-/assets/")) record(response.request(), response.status());
  });
  page.on("requestfailed", (request) => record(request, request.failure()?.errorText));
}

/** Checks that no unexpected event happened on a page, and closes it. */
export async function close(page) {
  // Its last messages have arrived when it has responded once more.
  await page.evaluate(() => 0);
  const faults = [...page.faults, ...page.executed];
  await page.context().close();
  if (faults.length > 0) throw new Error(`on the page: ${faults.join("; ")}`);
}

/** Runs a test; where it fails, its error contains the content of its pages. @param {string} name @param {() => Promise<any>} test */
export async function during(name, test) {
  const pages = new Set();
  try {
    return await running.run(pages, test);
  } catch (error) {
    let number = 0;
    for (const page of pages) {
      if (page.isClosed()) continue;
      number += 1;
      error.stack += `\n${await evidence(page, `${name.replace(/\W+/g, "-")}-${number}`)}`;
    }
    throw error;
  } finally {
    for (const page of pages) await page.context().close().catch(() => {});
  }
}

/** Returns the visible text of a page, and keeps a screenshot. */
async function evidence(page, name) {
  // A hanging page has no further output.
  const most = (work) => Promise.race([work, new Promise((_, fail) => setTimeout(() => fail(new Error("no response")), 5_000))]).catch((error) => `(${error.message})`);
  const focus = await most(page.evaluate(() => `${document.activeElement?.outerHTML ?? ""}`.slice(0, 200)));
  const text = await most(page.evaluate(() => document.body.innerText));
  mkdirSync(options.evidence, { recursive: true });
  await most(page.screenshot({ path: join(options.evidence, `${name}.png`), timeout: 4_000 }));
  const last = (lines) => lines.slice(-LINES_MAX).map((line) => `    ${line.slice(0, 300)}`).join("\n");
  return [
    `  ${page.url()}, screenshot ${name}.png`, `  faults: ${[...page.faults, ...page.executed].join("; ") || "none"}`, `  focus: ${focus}`,
    "  last messages:", last(page.messages), "  last requests:", last(page.answers), "  visible text:", text.slice(0, TEXT_MAX).replace(/^/gm, "    "),
  ].join("\n");
}

/** Sends an API request with the key, to another server where one is given. */
export async function api(method, path, body, headers = {}, to = { base, key }) {
  const init = { method, headers: { Authorization: `Bearer ${to.key}`, ...headers }, body };
  const answer = await fetch(to.base + path, init);
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

/** Stores a file under exactly this key. */
export async function store(bucket, name, body, type = "") {
  const form = new FormData();
  form.append("file", new File([body], name.split("/").at(-1), { type }));
  const path = name.split("/").map(encodeURIComponent).join("/");
  await api("POST", `/${bucket}/${path}?overwrite=true`, form);
}

/** Returns all keys of a bucket below a prefix. */
export async function keys(bucket, prefix = "", to = { base, key }) {
  const all = [];
  let more = "";
  do {
    const page = await (await api("GET", `/api/list-objects?bucketName=${bucket}&prefix=${encodeURIComponent(prefix)}${more}`, undefined, {}, to)).json();
    all.push(...page.Contents.map((it) => it.Key));
    more = page.NextContinuationToken ? `&continuationToken=${encodeURIComponent(page.NextContinuationToken)}` : "";
  } while (more !== "");
  return all;
}

/** Serializes operations that share something of the machine, such as the clipboard. */
function turns() {
  let before = Promise.resolve();
  return (work) => {
    const mine = before.then(work);
    before = mine.catch(() => {});
    return mine;
  };
}

/** Lock of the clipboard, which all pages share. */
export const withClipboard = turns();

/** Drops files and folders of the disk, as the system does. */
export async function dropFromDisk(page, paths, selector = ".browser") {
  await page.locator(selector).waitFor();
  const box = await page.locator(selector).boundingBox();
  const client = await page.context().newCDPSession(page);
  const place = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const data = { items: [], files: paths, dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) await client.send("Input.dispatchDragEvent", { type, ...place, data });
}

/** Returns the CPU time of the page's own thread for some work in milliseconds. Other load of the machine is excluded. */
export async function threadMs(page, work) {
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  const taken = async () => (await client.send("Performance.getMetrics")).metrics.find((it) => it.name === "ThreadTime").value * 1000;
  const before = await taken();
  const result = await work();
  const ms = (await taken()) - before;
  await client.detach();
  // A throttled page spends that time, too.
  return { result, ms: ms / Number(options.slow ?? 1) };
}

/** Waits until the focused row is the one of this name. */
export const focused = (page, name, kind = ".row") => page.locator(`${kind}:focus .name`).getByText(name, { exact: true }).waitFor();

/** Names of the rendered rows, from the top. */
export const rows = (page) => page.evaluate(() => {
  const drawn = [...document.querySelectorAll(".browser .row")].sort((one, other) => one.dataset.index - other.dataset.index);
  return drawn.map((row) => row.querySelector(".name").textContent.trim());
});

/** Waits until these rows are shown, and no others. */
export async function shows(page, names) {
  for (const end = Date.now() + PATIENCE_MS; ; await new Promise((done) => setTimeout(done, 50))) {
    const found = await rows(page).catch(() => []);
    if (found.length === names.length && found.every((name, at) => name === names[at])) return;
    if (Date.now() > end) assert.deepEqual(found, names);
  }
}

/** Waits until a list has this many rows, and has rendered the visible ones. */
export async function waitForRows(page, count) {
  await page.waitForFunction((wanted) => {
    const list = document.querySelector(".browser .viewport");
    const drawn = list?.querySelectorAll(".row").length ?? 0;
    return list?.getAttribute("aria-rowcount") === String(wanted + 1) && (wanted < 8 ? drawn === wanted : drawn > 0);
  }, count);
}

export async function shot(page, name) {
  if (!options.shots) return;
  await page.screenshot({ path: `${options.shots}/${name}.png` });
}
