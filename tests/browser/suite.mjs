// All tests, one after the other, in one browser. `main.rs` starts this and reads how it ended.

import { launch, options, quit } from "./driver.mjs";
import { tests as entrance } from "./entrance.mjs";
import { tests as files } from "./files.mjs";
import { tests as hostile } from "./hostile.mjs";
import { tests as keyboard } from "./keyboard.mjs";
import { tests as looks } from "./looks.mjs";
import { tests as management } from "./management.mjs";
import { tests as operation } from "./operation.mjs";
import { tests as pages } from "./pages.mjs";
import { tests as people } from "./people.mjs";
import { tests as pictures } from "./preview.mjs";
import { tests as pure } from "./pure.mjs";
import { tests as uploads } from "./uploads.mjs";

/** A test that takes longer has failed. */
const PATIENCE_MS = 60_000;

const all = Object.entries({ ...pure, ...entrance, ...files, ...pictures, ...uploads, ...keyboard, ...hostile, ...looks, ...management, ...people, ...operation, ...pages });
const chosen = all.filter(([name]) => !options.only || name.includes(options.only));
let failed = chosen.length === 0 ? 1 : 0;
await launch();
for (const [name, run] of chosen) {
  const began = performance.now();
  let timer;
  try {
    const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error(`takes longer than ${PATIENCE_MS} ms`)), PATIENCE_MS); });
    const said = await Promise.race([run(), late]);
    console.log(`ok ${name} (${Math.round(performance.now() - began)} ms)${said ? `: ${said}` : ""}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.stack}`);
  } finally {
    clearTimeout(timer);
  }
}
await quit();
console.log(`${chosen.length - failed} of ${chosen.length} passed`);
process.exit(failed === 0 ? 0 : 1);
