// The package: generated files, types, size, examples, and what the server serves of it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { getImage } from "@trug/client/nuxt";
import { examples, EXAMPLE_URL } from "./examples.mjs";
import { base, key, trug } from "./server.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const REBUILD = "npm run --prefix server/client build";
const GZIP_BYTES_MAX = 12 * 1_024;
// Files in this folder import the package by its name.
const folder = mkdtempSync(join(tmpdir(), "client-test-"));
mkdirSync(join(folder, "node_modules/@trug"), { recursive: true });
symlinkSync(root, join(folder, "node_modules/@trug/client"));
after(() => rmSync(folder, { recursive: true }));

const read = (path) => readFileSync(join(root, path), "utf8");
const run = (...words) => execFileSync(process.execPath, words, { cwd: root, encoding: "utf8", stdio: "pipe" });

test("types match the OpenAPI document", () => {
  run("generate.mjs", folder);
  assert.ok(
    readFileSync(join(folder, "types.gen.ts"), "utf8") === read("src/types.gen.ts"),
    `src/types.gen.ts is stale: ${REBUILD}`,
  );
});

test("dist matches the sources", () => {
  const built = join(folder, "dist");
  run("build.mjs", built);
  assert.deepEqual(readdirSync(join(root, "dist")).sort(), readdirSync(built).sort());
  for (const name of readdirSync(built)) {
    assert.ok(readFileSync(join(built, name), "utf8") === read(`dist/${name}`), `dist/${name} is stale: ${REBUILD}`);
  }
});

test("client.js is small, and has no imports", () => {
  const text = read("dist/client.js");
  const bytes = gzipSync(text, { level: 9 }).length;
  assert.ok(bytes <= GZIP_BYTES_MAX, `${bytes} bytes, at most ${GZIP_BYTES_MAX}`);
  assert.doesNotMatch(text, /^import |\bimport\(/m);
});

test("the package has no dependencies, and its lock file no hosts", () => {
  const { dependencies, devDependencies } = JSON.parse(read("package.json"));
  assert.deepEqual([dependencies, Object.keys(devDependencies)], [undefined, ["typescript"]]);
  assert.doesNotMatch(read("package-lock.json"), /"resolved"/);
});

test("sources and examples pass the type check", () => {
  const typed = join(folder, "typed");
  mkdirSync(typed);
  const ambient = `declare const process: { env: Record<string, string> };
declare module "node:fs" { export function openAsBlob(path: string): Promise<Blob>; }
declare function defineNuxtConfig<T>(config: T): T;\n`;
  writeFileSync(join(typed, "ambient.d.ts"), ambient);
  for (const [at, { text }] of examples.entries()) {
    writeFileSync(
      join(typed, `example-${at}.ts`),
      `${text.replaceAll(`${EXAMPLE_URL}/-/client.js`, "@trug/client")}\nexport {};\n`,
    );
  }
  writeFileSync(
    join(typed, "wrong.ts"),
    `import { Trug } from "@trug/client";
const trug = new Trug({ url: "https://a.example" });
// @ts-expect-error: unknown path
trug.request("GET", "/api/unknown");
// @ts-expect-error: missing body
trug.request("POST", "/api/jobs");
// @ts-expect-error: wrong kind
trug.request("POST", "/api/jobs", { body: { kind: "unknown" } });
// @ts-expect-error: wrong format
trug.bucket("pics").url("a", { format: "bmp" });
const count: Promise<number> = trug.usage().then((usage) => usage.buckets.length);
export { count };\n`,
  );
  const compilerOptions = { rootDir: typed, strictNullChecks: false, noImplicitAny: false, noUnusedLocals: false };
  writeFileSync(
    join(typed, "tsconfig.json"),
    JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, include: ["*.ts"] }),
  );
  for (const project of [root, typed]) {
    try {
      run("node_modules/typescript/bin/tsc", "--project", project);
    } catch (error) {
      assert.fail(error.stdout);
    }
  }
});

test("examples of the README run in Node", async (context) => {
  await trug.createBucket("pics").catch(() => {});
  await trug.createBucket("scratch").catch(() => {});
  await trug.createBucket("secrets", { access: "private" }).catch(() => {});
  await trug.bucket("secrets").upload("contract.pdf", "a contract");
  for (const method of ["log", "error"]) context.mock.method(console, method, () => {});
  process.env.TRUG_KEY = key;
  globalThis.defineNuxtConfig = (config) => config;
  writeFileSync(join(folder, "holiday.mp4"), Buffer.alloc(17_000_000));
  const before = process.cwd();
  process.chdir(folder);
  context.after(() => process.chdir(before));
  const modules = [];
  for (const [at, { text }] of examples.filter((it) => !it.isOfPage).entries()) {
    const file = join(folder, `run-${at}.mjs`);
    writeFileSync(file, text.replaceAll(EXAMPLE_URL, base));
    modules.push({ text, exported: await import(pathToFileURL(file)) });
  }
  assert.equal(modules.length, 11);
  const of = (word) => modules.find((it) => it.text.includes(word)).exported;
  assert.match(await (await of("uploadToken").POST()).text(), /\/api\/presigned-url\//);
  assert.equal(of("/next").default({ src: "a.png", width: 1 }), `${base}/pics/a.png?width=1&format=auto`);
  const { provider, options } = of("defineNuxtConfig").default.image.providers.trug;
  assert.equal(provider, "@trug/client/nuxt");
  assert.equal(getImage("a.png", options).url, `${base}/pics/a.png?format=auto`);
  assert.equal((await trug.bucket("pics").download("films/holiday.mp4")).headers.get("content-length"), "17000000");
  assert.equal((await trug.bucket("pics").search("hello")).total, 0, "deleted by the first example");
});

test("examples have at most ten lines", () => {
  assert.ok(examples.length >= 10);
  for (const { text } of examples) assert.ok(text.trim().split("\n").length <= 10, text);
});

test("the server serves module and types to every origin", async () => {
  const script = await fetch(`${base}/-/client.js`);
  const { headers } = script;
  assert.ok((await script.text()) === read("dist/client.js"), "the binary has another version: build it again");
  const fixed = ["content-type", "cache-control", "x-typescript-types", "access-control-allow-origin"].map((name) =>
    headers.get(name),
  );
  assert.deepEqual(fixed, ["text/javascript; charset=utf-8", "no-cache", "/-/client.d.ts", "*"]);
  assert.match(headers.get("etag"), /^"/);
  assert.equal((await fetch(`${base}/-/client.js`, { headers: { "If-None-Match": headers.get("etag") } })).status, 304);
  const location = headers.get("content-location");
  const versioned = await fetch(base + location);
  assert.equal(versioned.headers.get("cache-control"), "public, max-age=31536000, immutable");
  assert.ok((await versioned.text()) === read("dist/client.js"));
  assert.equal((await fetch(`${base}/-/client/0123/client.js`)).status, 404);
  const types = await fetch(`${base}/-/client.d.ts`);
  assert.equal(types.headers.get("content-type"), "application/typescript; charset=utf-8");
  assert.ok((await types.text()) === read("dist/client.d.ts"));
});
