// All tests, in one browser. `main.rs` starts this and reads its result.
//
// Those of one file run in sequence, since they share folders; files run concurrently. Timing tests run
// alone, as far as the suite controls that.

import { api, during, launch, options, quit } from "./driver.mjs";
import { tests as addresses } from "./origins.mjs";
import { tests as decoded } from "./decoded.mjs";
import { tests as documentation } from "./documentation.mjs";
import { tests as entrance } from "./entrance.mjs";
import { measured as measuredFiles, tests as files } from "./files.mjs";
import { tests as finding } from "./finding.mjs";
import { tests as fresh } from "./fresh.mjs";
import { tests as deletion } from "./deletion.mjs";
import { tests as galleries } from "./galleries.mjs";
import { tests as hostile } from "./hostile.mjs";
import { tests as keyboard } from "./keyboard.mjs";
import { tests as links } from "./links.mjs";
import { tests as looks } from "./looks.mjs";
import { tests as management } from "./management.mjs";
import { tests as operation } from "./operation.mjs";
import { tests as outage } from "./outage.mjs";
import { tests as pages } from "./pages.mjs";
import { tests as people } from "./people.mjs";
import { tests as pointer } from "./pointer.mjs";
import { tests as pictures } from "./preview.mjs";
import { measured as measuredPromises, tests as promises } from "./promises.mjs";
import { tests as pure } from "./pure.mjs";
import { invitation, takeUp } from "./sessions.mjs";
import { tests as requests } from "./requests.mjs";
import { tests as states } from "./states.mjs";
import { tests as tenants } from "./tenants.mjs";
import { measured as measuredUploads, tests as uploads } from "./uploads.mjs";

/** Time-out of a test that hangs, far above the 90 s of the longest one on two cores. */
const PATIENCE_MS = 600_000 * Number(options.slow ?? 1);
/** Number of files whose tests run concurrently. */
const LANES = 4;

/** Longest first, so that none is left over at the end. */
const together = [looks, states, pages, documentation, decoded, promises, hostile, uploads, pointer, management, outage, operation, links, entrance, pictures, people, finding, requests, galleries, deletion, keyboard, files, tenants, addresses, fresh, pure];
const alone = [measuredFiles, measuredPromises, measuredUploads];

/** Whether it is among those selected by words. */
const isMeant = (name) => !options.only || options.only.split(",").some((words) => name.includes(words));

let chosen = 0;
/** Names of failed tests, with the first line of their error. */
const failed = [];

async function run(name, test) {
  const began = performance.now();
  const took = () => `${((performance.now() - began) / 1000).toFixed(1)} s`;
  let timer;
  chosen += 1;
  try {
    const said = await during(name, () => {
      const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error(`takes longer than ${PATIENCE_MS} ms`)), PATIENCE_MS); });
      return Promise.race([test(), late]);
    });
    console.log(`ok ${name} (${took()})${said ? `: ${said}` : ""}`);
  } catch (error) {
    console.log(`FAILED ${name} (${took()}): ${error.stack}`);
    failed.push(`${name}: ${String(error).split("\n")[0]}`);
  } finally {
    clearTimeout(timer);
  }
}

/** Runs files of tests, some side by side. */
async function go(files, lanes) {
  const waiting = files.map((file) => Object.entries(file).filter(([name]) => isMeant(name)));
  const lane = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      for (const [name, test] of file) await run(name, test);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

const began = performance.now();
const { account } = await (await api("GET", "/api/account")).json();
await launch(await takeUp(await invitation(account.id)));
await go(together, LANES);
await go(alone, 1);
await quit();
console.log(`${chosen - failed.length} of ${chosen} passed in ${Math.round((performance.now() - began) / 1000)} s`);
// Repeated last, since many build servers show only the end of a long log.
for (const failure of failed) console.log(`FAILED ${failure}`);
process.exit(chosen > 0 && failed.length === 0 ? 0 : 1);
