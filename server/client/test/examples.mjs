// Examples of the README.
//
// Guarantees: every fenced block of JavaScript is in the list. Non-goals: running them.

import { readFileSync } from "node:fs";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

/** Server of the examples. */
export const EXAMPLE_URL = "https://files.example.org";

/** Examples in their order; those of pages use the document. */
export const examples = [...readme.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, text]) => ({
  text,
  isOfPage: /\bdocument\b/.test(text),
}));
