// A long upload queue while its server is killed and restarted. Every dropped file is stored in the end: all of them,
// each once, with its own bytes.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { api, close, dropFromDisk, keys, open, options, shows } from "./driver.mjs";
import { setUp } from "./sessions.mjs";
import { startServer } from "./servers.mjs";

const COUNT = 2_000;
const FOLDERS = 8;
/** One file that is sent in pieces. */
const LARGE = { name: "film.bin", bytes: 20_000_000 };
/** Number of kills of the server, each during a request after so many, and its downtime. */
const KILLS = 2;
const KILLED_AFTER = 14;
const GONE_MS = 700;

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Bytes that no other file has, of another length than its neighbours'. */
const contents = (number) => Buffer.from(`${number} `.repeat(50 + ((number * 37) % 900)));

/** Writes the files to drop, and returns their hashes by key. */
function written(root) {
  const wanted = new Map();
  for (let number = 0; number < COUNT; number += 1) {
    const below = `${number % FOLDERS}`;
    mkdirSync(join(root, below), { recursive: true });
    const name = `n${String(number).padStart(4, "0")}.dat`;
    writeFileSync(join(root, below, name), contents(number));
    wanted.set(`dropped/${below}/${name}`, hash(contents(number)));
  }
  const large = Buffer.alloc(LARGE.bytes, "large ");
  writeFileSync(join(root, LARGE.name), large);
  return wanted.set(`dropped/${LARGE.name}`, hash(large));
}

/** Runs functions, some at a time. */
async function each(items, work) {
  const waiting = [...items];
  const one = async () => { for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item); };
  await Promise.all(Array.from({ length: 8 }, one));
}

export const tests = {
  async list_stays_during_outage_and_loads_the_rest_after_it() {
    const server = await startServer();
    const { cookie, key } = await setUp(server.link, "pics");
    const to = { base: server.base, key };
    const stored = async (path) => {
      const form = new FormData();
      form.append("file", new File(["a file"], path.split("/").at(-1)));
      await api("POST", `/pics/${path}`, form, {}, to);
    };
    await stored("a.txt");
    await stored("sub/x.txt");
    const page = await open("/-/files/pics/", { session: cookie, at: server.base });
    await shows(page, ["sub", "a.txt"]);
    await stored("b.txt");
    await server.kill();
    const failed = page.waitForEvent("requestfailed", (request) => request.url().includes("list-objects"));
    await page.keyboard.press("r");
    await failed;
    await shows(page, ["sub", "a.txt"]);
    await server.startAgain();
    await shows(page, ["sub", "a.txt", "b.txt"]);
    await server.kill();
    await page.locator(".row .name").getByText("sub", { exact: true }).click();
    await page.getByRole("alert").filter({ hasText: "Can't reach the server" }).first().waitFor();
    await server.startAgain();
    await shows(page, ["x.txt"]);
    await close(page);
    await server.stop();
  },

  async upload_of_2000_files_survives_two_server_kills() {
    const server = await startServer();
    const { cookie, key } = await setUp(server.link, "pics");
    const to = { base: server.base, key };
    const root = join(options.folder, "outage", "dropped");
    const wanted = written(root);
    const page = await open("/-/files/pics/", { session: cookie, at: server.base });
    await page.getByRole("heading", { name: "No files yet" }).waitFor();

    let sent = 0;
    let isDown = false;
    const kills = [];
    const kill = async () => {
      await server.kill();
      // A request completed without a response took effect; the page has to find that out.
      await new Promise((done) => setTimeout(done, GONE_MS));
      await server.startAgain();
      isDown = false;
    };
    page.on("request", (request) => {
      if (request.method() !== "POST" || isDown || kills.length === KILLS) return;
      sent += 1;
      if (sent % KILLED_AFTER !== 0) return;
      isDown = true;
      const done = kill();
      // It is awaited at the end.
      done.catch(() => {});
      kills.push(done);
    });
    const failed = [];
    page.on("requestfailed", (request) => { if (request.method() === "POST" || request.method() === "PATCH") failed.push(request.url()); });
    await dropFromDisk(page, [root]);
    // Without any input it continues by itself.
    await page.locator(".uploads h2", { hasText: `${(COUNT + 1).toLocaleString("en")} files uploaded` }).waitFor({ timeout: 150_000 });
    await Promise.all(kills);
    assert.equal(kills.length, KILLS, "it was over before the server was killed");
    assert.ok(failed.length > 0, "no request met the server's end");

    assert.deepEqual((await keys("pics", "", to)).sort(), [...wanted.keys()].sort());
    const wrong = [];
    await each(wanted, async ([name, sum]) => {
      const bytes = Buffer.from(await (await api("GET", `/pics/${name}`, undefined, {}, to)).arrayBuffer());
      if (hash(bytes) !== sum) wrong.push(name);
    });
    assert.deepEqual(wrong, []);
    await page.locator(".row .name").getByText("dropped", { exact: true }).waitFor();
    await close(page);
    await server.stop();
    return `${failed.length} requests broke off`;
  },
};
