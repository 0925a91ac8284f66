// Builds `dist`: for each entry one ES module without imports, and its types.
//
// TypeScript removes the types; the modules of an entry are then joined in the order of their imports. So top-level
// names are unique in `src`, and imports are not renamed. Guarantees: the output depends on `src` alone.
// Non-goals: minification, since compressed transfer makes it needless.
//
//   node build.mjs [FOLDER]    writes into FOLDER, by default `dist`

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const ENTRIES = { client: "index", next: "next", nuxt: "nuxt" };
const { name, version, license } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));

function compile(outDir) {
  const tsc = join(here, "node_modules/typescript/bin/tsc");
  const shared = ["--project", here, "--noEmit", "false", "--rewriteRelativeImportExtensions", "--outDir", outDir];
  const run = (...more) => execFileSync(process.execPath, [tsc, ...shared, ...more], { stdio: "inherit" });
  run("--removeComments");
  run("--declaration", "--emitDeclarationOnly");
}

/** Returns the modules that an entry imports, each after those that it imports itself. */
function ordered(read, module, found = new Set()) {
  for (const [, imported] of read(module).matchAll(/ from "\.\/(.+?)\.[tj]s"/g)) {
    if (!found.has(imported)) ordered(read, imported, found);
  }
  return found.add(module);
}

/** Joins an entry and its modules, whose exports become local. */
function joined(read, entry) {
  const parts = [...ordered(read, entry)].map((module) => {
    const text = read(module).replace(/^\/\/.*\n|^import [^;]*;\n|^export \{\};\n/gm, "");
    if (module !== entry) return text.replace(/^export /gm, "").trim();
    return text.replace(/^(export (?:type )?\{[^}]*\}) from "[^"]*";/gm, "$1;").trim();
  });
  const text = parts
    .filter(Boolean)
    .join("\n")
    .replace(/^( {4})+/gm, (indent) => "\t".repeat(indent.length / 4));
  return `/*! ${name} ${version}, ${license} */\n${text}\n`;
}

const compiled = mkdtempSync(join(tmpdir(), "client-"));
try {
  compile(compiled);
  const dist = process.argv[2] ?? join(here, "dist");
  mkdirSync(dist, { recursive: true });
  for (const [output, entry] of Object.entries(ENTRIES)) {
    const read = (end) => (module) => readFileSync(join(compiled, `${module}.${end}`), "utf8");
    writeFileSync(join(dist, `${output}.js`), joined(read("js"), entry));
    // Without an explicit list, all declarations of a module of types are exported.
    writeFileSync(join(dist, `${output}.d.ts`), `${joined(read("d.ts"), entry)}export {};\n`);
  }
} finally {
  rmSync(compiled, { recursive: true });
}
