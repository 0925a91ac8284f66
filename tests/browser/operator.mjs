// Pages and buckets of the operator, to whom all views are open.

import { open } from "./driver.mjs";
import { asOperator as ask, operator } from "./sessions.mjs";

export { ask };

/** A page of the operator. */
export const openAs = async (address, how = {}) => open(address, { session: await operator(), ...how });

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
