// The main flows in Chromium, in a page of another origin than the server's.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { chromium as browsers } from "../../../tests/browser/node_modules/playwright-core/index.mjs";
import { examples, EXAMPLE_URL } from "./examples.mjs";
import { base, bytes, chromium, holds, key, newBucket, startProxy, trug } from "./server.mjs";

const MIB = 1_048_576;
let browser;
let site;
let origin;
/** Example that the page of the site runs. */
let example = "";

before(async () => {
  browser = await browsers.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
  site = createServer(async (request, response) => {
    if (request.url === "/upload-url") return response.end((await trug.bucket("from-pages").uploadToken("inbox/")).url);
    response.setHeader("Content-Type", "text/html");
    response.end(
      `<!doctype html><meta charset=utf-8><input type=file><progress value=0></progress><picture><img></picture>
       <script type=module>${example}</script>`,
    );
  });
  await new Promise((done) => site.listen(0, "127.0.0.1", done));
  origin = `http://127.0.0.1:${site.address().port}/`;
});
after(async () => {
  await browser.close();
  site.close();
});

/** Opens a page in which `Trug` is the class of the served module. */
async function open(url = base) {
  const page = await browser.newPage();
  page.warnings = [];
  page.on("console", (message) => page.warnings.push(message.text()));
  await page.goto(origin);
  await page.evaluate(
    async ([url, key]) => {
      const client = await import(`${url}/-/client.js`);
      Object.assign(globalThis, client, { trugUrl: url, trug: new client.Trug({ url, key }) });
    },
    [url, key],
  );
  return page;
}

test("page uploads with progress, lists, searches and deletes", async () => {
  const bucket = await newBucket();
  const page = await open();
  const found = await page.evaluate(async (name) => {
    const pics = new Trug({ url: trugUrl, key: "another client" }) && trug.bucket(name);
    const seen = [];
    const file = new File([new Uint8Array(6_000_000)], "a?#%&🦀 b.bin");
    const { key, size } = await pics.upload("2026/", file, { onProgress: (it) => seen.push(it) });
    const listed = [];
    for await (const entry of pics.list({ prefix: "2026/" })) listed.push(entry.key);
    const hits = (await pics.search("🦀")).hits.map((hit) => hit.key);
    const content = (await (await pics.download(key)).arrayBuffer()).byteLength;
    const { deletedCount } = await pics.delete(key);
    const missing = await pics
      .download(key)
      .catch((error) => [error instanceof TrugError, error.code, error.requestId.length > 0]);
    return { key, size, seen, listed, hits, content, deletedCount, missing };
  }, bucket.name);
  const name = "2026/a?#%&🦀 b.bin";
  const { seen, ...rest } = found;
  assert.deepEqual(rest, {
    key: name,
    size: 6_000_000,
    listed: [name],
    hits: [name],
    content: 6_000_000,
    deletedCount: 1,
    missing: [true, "file_not_found", true],
  });
  const sent = seen.map((it) => it.sentBytes);
  assert.deepEqual(
    sent,
    [...sent].sort((one, other) => one - other),
  );
  assert.deepEqual([seen.at(-1).sentBytes, seen.at(-1).totalBytes, seen.at(-1).ratio], [6_000_000, 6_000_000, 1]);
  const warnings = page.warnings.filter((it) => it.includes("contains an API key"));
  assert.equal(warnings.length, 1, "one warning for all clients");
  await page.close();
});

test("page resumes a large upload after a reload", async () => {
  const bucket = await newBucket();
  const upload = async ([name, stopAt]) => {
    const words = new Uint32Array(5 * 1_048_576);
    let state = 1;
    for (let at = 0; at < words.length; at += 1)
      words[at] = state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const file = new File([words], "film.bin", { lastModified: 1_700_000_000_000 });
    const controller = new AbortController();
    const seen = [];
    const onProgress = (it) => {
      seen.push(it.sentBytes);
      if (it.sentBytes > stopAt) controller.abort();
    };
    const outcome = await trug
      .bucket(name)
      .upload("", file, { onProgress, signal: controller.signal })
      .then(
        (it) => it.key,
        (error) => error.name,
      );
    return {
      outcome,
      first: seen[0],
      last: seen.at(-1),
      entries: Object.keys(localStorage).length,
      text: JSON.stringify(localStorage),
    };
  };
  const page = await open();
  const stopped = await page.evaluate(upload, [bucket.name, 9 * MIB]);
  assert.equal(stopped.outcome, "AbortError");
  assert.equal(stopped.entries, 1);
  assert.ok(!stopped.text.includes(key), "the key is stored");
  await page.reload();
  await page.evaluate(
    async ([url, key]) => {
      const { Trug } = await import(`${url}/-/client.js`);
      globalThis.trug = new Trug({ url, key });
    },
    [base, key],
  );
  const ended = await page.evaluate(upload, [bucket.name, Infinity]);
  assert.equal(ended.outcome, "film.bin");
  assert.ok(ended.first >= 8 * MIB, `continues at ${ended.first}`);
  assert.deepEqual([ended.last, ended.entries], [20 * MIB, 0]);
  assert.ok(await holds(bucket, "film.bin", bytes(20 * MIB)));
  await page.close();
});

test("page repeats uploads after lost connections and 503", async () => {
  const bucket = await newBucket();
  const faults = [
    { cutAfter: 2 * MIB },
    { status: 503, headers: { "Retry-After": "1", "Access-Control-Allow-Origin": "*" } },
  ];
  const proxy = await startProxy(({ method, url }) =>
    method === "POST" && url.startsWith(`/${bucket.name}/`) ? faults.shift() : undefined,
  );
  const page = await open(proxy.url);
  const stored = await page.evaluate(
    (name) => trug.bucket(name).upload("a.bin", new Uint8Array(10_000_000)),
    bucket.name,
  );
  assert.deepEqual([stored.key, stored.size, faults.length], ["a.bin", 10_000_000, 0]);
  await page.close();
  proxy.close();
});

test("examples of the README run in a page", async () => {
  await trug.createBucket("from-pages").catch(() => {});
  await trug.createBucket("pics").catch(() => {});
  const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
  await trug.bucket("pics").upload("cat.png", Buffer.from(dot, "base64"), { overwrite: true });
  const ofPages = examples.filter((it) => it.isOfPage);
  assert.equal(ofPages.length, 2);
  for (const { text } of ofPages) {
    example = text.replaceAll(EXAMPLE_URL, base);
    const page = await browser.newPage();
    await page.goto(origin);
    if (text.includes("uploadWithToken")) {
      await page.setInputFiles("input", { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(dot, "base64") });
      await page.waitForFunction(() => document.querySelector("progress").value === 1);
    } else {
      await page.waitForFunction(() => document.querySelectorAll("source").length === 2);
    }
    // The image is shown: `decode` fails otherwise.
    await page.waitForFunction(() => document.querySelector("img").currentSrc);
    await page.evaluate(() => document.querySelector("img").decode());
    await page.close();
  }
  example = "";
});
