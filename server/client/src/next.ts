// Image loader of Next.js, for `images.loaderFile` or the property `loader`.
//
// Guarantees: no state, and no global but those of the language. Non-goals: URLs (`images.ts`).

import { imageUrl } from "./images.ts";
import type { Transform } from "./urls.ts";

/** Returns a loader of the images of a bucket. `baseUrl` is the URL of the bucket; `format` is `auto` by default. */
export function loader(
  baseUrl: string,
  { format = "auto" }: { format?: Transform["format"] } = {},
): (image: { src: string; width: number; quality?: number }) => string {
  return ({ src, width, quality }) => imageUrl(baseUrl, src, { width, quality, format });
}
