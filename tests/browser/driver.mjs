// A browser, and pages in it that notice whatever should not happen: scripts of others, refused policies, errors.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

export const options = JSON.parse(process.env.TRUG_BROWSER_OPTIONS);
export const { base, key } = options;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const ACCOUNT = { id: "acc", name: "ann", role: "operator", plan: "Business", standing: "good" };
export const SIGNED_IN = { signedIn: true, account: ACCOUNT, session: { id: "s", createdAt: "", expiresAt: "" } };

let browser = null;

/** Starts the browser. */
export async function launch() {
  browser = await chromium.launch({
    executablePath: options.chromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

export const quit = () => browser.close();

/**
 * A page of somebody who is signed in. The key goes with every request, and who is signed in is told by the driver.
 * @param {{session?: any, context?: any}} [how]
 */
export async function open(address = "/-/", { session = SIGNED_IN, ...context } = {}) {
  const around = await browser.newContext({
    baseURL: base, viewport: { width: 1280, height: 800 }, extraHTTPHeaders: session.signedIn ? { Authorization: `Bearer ${key}` } : {},
    reducedMotion: "reduce", ...context,
  });
  await around.grantPermissions(["clipboard-read", "clipboard-write"], { origin: base });
  const page = await around.newPage();
  page.faults = [];
  page.ran = [];
  page.on("pageerror", (error) => page.faults.push(`error: ${error.message}`));
  page.on("dialog", async (dialog) => {
    if (dialog.type() === "beforeunload") return dialog.accept();
    page.ran.push(`${dialog.type()}: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted|violates/i.test(message.text())) page.faults.push(message.text());
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      (window.violations ??= []).push(`${event.effectiveDirective}: ${event.blockedURI}`);
    });
  });
  if (options.assets) await page.route("**/-/assets/**", (route) => route.fulfill({ path: `${options.assets}/${route.request().url().split("/").at(-1)}` }));
  if (session.answer === undefined) await page.route("**/-/session", (route) => route.fulfill({ json: session }));
  await page.goto(address);
  return page;
}

/** Checks that nothing happened on a page that should not, and closes it. */
export async function close(page) {
  const violations = await page.evaluate(() => window.violations ?? []);
  const faults = [...page.faults, ...page.ran, ...violations];
  await page.context().close();
  if (faults.length > 0) throw new Error(`on the page: ${faults.join("; ")}`);
}

/** Serious findings of axe on what is shown. */
export async function findings(page) {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const result = await window.axe.run(document, { resultTypes: ["violations"] });
    const serious = result.violations.filter((it) => ["serious", "critical"].includes(it.impact));
    return serious.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`);
  });
}

/** A request of the API, with the key. */
export async function api(method, path, body, headers = {}) {
  const init = { method, headers: { Authorization: `Bearer ${key}`, ...headers }, body };
  const answer = await fetch(base + path, init);
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

/** Keys of a bucket below a prefix. */
export async function keys(bucket, prefix = "") {
  const answer = await (await api("GET", `/api/list-objects?bucketName=${bucket}&prefix=${encodeURIComponent(prefix)}`)).json();
  return answer.Contents.map((it) => it.Key);
}

/** Drops files and folders of the disk, as the system does it. */
export async function dropFromDisk(page, paths, selector = ".browser") {
  const box = await page.locator(selector).boundingBox();
  const client = await page.context().newCDPSession(page);
  const place = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const data = { items: [], files: paths, dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) await client.send("Input.dispatchDragEvent", { type, ...place, data });
}

/** Text of the rows that are shown. */
export const rows = (page) => page.locator(".row .name").allTextContents();

/** Waits until a list has this many rows. */
export async function waitForRows(page, count) {
  await page.waitForFunction((wanted) => {
    const list = document.querySelector(".browser .viewport");
    return list?.getAttribute("aria-rowcount") === String(wanted + 1);
  }, count);
}

export async function shot(page, name) {
  if (!options.shots) return;
  await page.screenshot({ path: `${options.shots}/${name}.png` });
}
