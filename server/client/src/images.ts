// URLs of images for the loaders of frameworks.
//
// Guarantees: absolute URLs outside the bucket are returned unchanged. Non-goals: private buckets.

import { encodePath, withOptions } from "./urls.ts";
import type { Transform } from "./urls.ts";

/** Returns the URL of an image variant. `src` is a path in the bucket, with or without a slash before it, or a URL. */
export function imageUrl(bucketUrl: string, src: string, transform: Transform): string {
  const root = bucketUrl.replace(/\/+$/, "");
  const isAbsolute = /^[a-z][a-z0-9+.-]*:/i.test(src);
  if (isAbsolute && !src.startsWith(`${root}/`)) return src;
  return withOptions(isAbsolute ? src : `${root}/${encodePath(src.replace(/^\/+/, ""))}`, transform);
}
