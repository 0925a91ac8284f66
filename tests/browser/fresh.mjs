// A new server, from the set-up link that it prints to the first file; keys, and their use.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { close, dropFromDisk, open, options, shot, waitForRows } from "./driver.mjs";
import { startServer } from "./servers.mjs";

const CAT = readFileSync(new URL("../fixtures/jpeg/420.jpg", import.meta.url));

/** Runs curl; returns its output, and the status of the response. */
async function curl(...words) {
  const { stdout } = await promisify(execFile)("curl", ["--silent", "--show-error", "--max-time", "30", "--write-out", "\n%{http_code}", ...words]);
  const end = stdout.lastIndexOf("\n");
  return { body: stdout.slice(0, end), status: Number(stdout.slice(end + 1)) };
}

/** Sends an API request like a page of the server, with its session. */
const ask = (page, method, path, body) => page.evaluate(async ([method, path, body]) => {
  const answer = await fetch(path, { method, headers: { "Content-Type": "application/json" }, body: body === null ? undefined : JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}, [method, path, body ?? null]);

export const tests = {
  async setup_link_configures_new_server_and_first_upload_works() {
    const server = await startServer();
    const anonymous = await open("/-/", { session: null, at: server.base });
    await anonymous.getByRole("heading", { name: "This server isn't set up yet" }).waitFor();
    await close(anonymous);

    const page = await open(server.link, { session: null, at: server.base });
    await page.getByLabel("Name").fill("ann");
    await page.getByLabel("Password").fill("four words are enough");
    await page.getByLabel("First bucket").fill("My Pics");
    assert.equal(await page.getByLabel("First bucket").inputValue(), "my-pics");
    await page.getByLabel("First bucket").fill("pics");
    await page.getByLabel("Visibility").selectOption("private");
    await page.getByRole("button", { name: "Create" }).click();
    const shown = page.locator("pre[aria-label='API key']");
    await shown.waitFor();
    const key = await shown.textContent();
    assert.match(key, /^trug_[a-z0-9]+_[a-z0-9]+_[a-z0-9]+$/i);
    assert.ok(!page.url().includes("#"), "the token stays in the address");
    await shot(page, "set-up-done");
    // The snippets of the page work unchanged.
    await page.getByText("Use it with curl, ShareX, aws-cli and others").click();
    const text = async (/** @type {string} */ name) => {
      await page.getByRole("tab", { name }).click();
      return page.getByRole("group", { name, exact: true }).textContent();
    };
    const folder = join(options.folder, "first");
    mkdirSync(join(folder, "photos"), { recursive: true });
    writeFileSync(join(folder, "cat.jpg"), CAT);
    writeFileSync(join(folder, "photos", "b.jpg"), CAT);
    // Without AWS and rclone settings of the environment.
    const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(AWS|RCLONE)_/.test(name)));
    const shell = (/** @type {string} */ lines) => promisify(execFile)("sh", ["-euc", lines], { cwd: folder, env: { ...own, RCLONE_CONFIG: join(folder, "rclone.conf"), NO_PROXY: "*" } });
    const { stdout } = await shell((await text("curl")).replaceAll("curl ", "curl --fail -s ").replace(/curl [^\n]*-X DELETE[^\n]*\n/, ""));
    assert.match(stdout, /"success":true/);
    assert.ok(statSync(join(folder, "cat.webp")).size > 100);
    await shell(await text("rclone"));
    await page.getByText("Use it with curl, ShareX, aws-cli and others").click();
    assert.ok(await page.getByRole("button", { name: "Open my files" }).isDisabled());
    await page.getByLabel("I have saved it").check();
    await page.getByRole("button", { name: "Open my files" }).click();
    await page.locator(".card", { hasText: "pics" }).click();
    await waitForRows(page, 1);

    writeFileSync(join(folder, "hello.txt"), "hello, trug\n");
    await dropFromDisk(page, [join(folder, "hello.txt")]);
    await waitForRows(page, 2);
    await page.locator(".uploads h2", { hasText: "1 file uploaded" }).waitFor();
    await page.locator(".row .name", { hasText: "hello.txt" }).click();
    await page.locator("dialog.preview pre", { hasText: "hello, trug" }).waitFor();

    // The displayed key gives the same access from a shell; without it the bucket is not accessible.
    const url = `${server.base}/pics/hello.txt`;
    assert.deepEqual(await curl("-H", `Authorization: Bearer ${key}`, url), { body: "hello, trug\n", status: 200 });
    assert.equal((await curl(url)).status, 401);
    await close(page);

    const late = await open(server.link, { session: null, at: server.base });
    await late.getByRole("heading", { name: "This server is already set up" }).waitFor();
    await late.getByRole("link", { name: "Sign in" }).click();
    await late.getByRole("heading", { name: "Sign in" }).waitFor();
    await close(late);
    await server.stop();
  },

  async setup_link_works_after_account_creation_by_cli() {
    const server = await startServer({ withAccount: true });
    const page = await open(server.link, { session: null, at: server.base });
    await page.getByLabel("Account").selectOption("ann");
    assert.equal(await page.getByLabel("First bucket").count(), 0);
    await page.getByLabel("Password").fill("four words are enough");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByLabel("I have saved it").check();
    await page.getByRole("button", { name: "Open my files" }).click();
    await page.locator(".card", { hasText: "photos" }).waitFor();
    await page.getByRole("link", { name: "Accounts" }).waitFor();
    await close(page);
    await server.stop();
  },

  async api_key_works_with_curl_until_revoked() {
    const page = await open("/-/files/photos/keyed/");
    await page.getByRole("heading", { name: "No files yet" }).waitFor();
    const { key, apiKey } = await ask(page, "POST", "/api/keys", { name: "phone", scopes: ["upload"], bucketName: "photos", prefix: "keyed" });
    const file = join(options.folder, "call.txt");
    writeFileSync(file, "a call\n");
    const send = (where) => curl("-H", `Authorization: Bearer ${key}`, "-F", `file=@${file}`, where);
    const base = new URL(page.url()).origin;
    assert.equal((await send(`${base}/photos/keyed/`)).status, 200);
    assert.equal((await send(`${base}/photos/elsewhere/`)).status, 403);
    await page.keyboard.press("r");
    await waitForRows(page, 1);
    await page.locator(".row .name", { hasText: "call.txt" }).waitFor();
    await ask(page, "DELETE", `/api/keys/${apiKey.id}`);
    assert.equal((await send(`${base}/photos/keyed/`)).status, 401);
    await close(page);
  },
};
