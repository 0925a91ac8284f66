// Pages and buckets of the operator, with access to all views.

import { open, PATIENCE_MS } from "./driver.mjs";
import { asOperator as ask, operator } from "./sessions.mjs";

export { ask };

/** A page of the operator. */
export const openAs = async (address, how = {}) => open(address, { session: await operator(), ...how });

/** Creates a bucket of the operator, unless it exists, and files in it; on another server where its `ask` is given. */
export async function fillBucket(bucketName, names = [], settings = {}, asked = ask) {
  const { buckets } = await asked("GET", "/api/buckets?limit=1000");
  if (!buckets.some((it) => it.bucketName === bucketName)) await asked("POST", "/api/buckets", { bucketName, ...settings });
  for (const name of names) {
    const form = new FormData();
    form.append("file", new File([`${name}\n`], name.split("/").at(-1)));
    await asked("POST", `/${bucketName}/${name.split("/").map(encodeURIComponent).join("/")}?overwrite=true`, form);
  }
}

/** Waits for a state of the server: a job has ended, a file is deleted. */
export async function until(look, what) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`it never came to this: ${what}`);
}
