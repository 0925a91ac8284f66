// Image provider of @nuxt/image: the named export for version 1, the default export for version 2.
//
// Guarantees: no state, and no global but those of the language. Non-goals: URLs (`images.ts`).

import { imageUrl } from "./images.ts";
import type { Transform } from "./urls.ts";

/** Modifiers of @nuxt/image, of which the options of a transform are used. */
export type Modifiers = Omit<Transform, "fit"> & { fit?: string };

/** Values of `fit` in @nuxt/image that have another name here. */
const FITS: Record<string, Transform["fit"]> = { inside: "contain", outside: "cover" };

/** Returns the URL of an image. `baseURL` is the URL of a bucket; `format` is `auto` by default. */
export function getImage(
  src: string,
  { modifiers = {}, baseURL }: { modifiers?: Modifiers; baseURL: string },
): { url: string } {
  const fit = FITS[modifiers.fit ?? ""] ?? (modifiers.fit as Transform["fit"]);
  return { url: imageUrl(baseURL, src, { format: "auto", ...modifiers, fit }) };
}

/** Returns the provider. */
export default function provider(): { getImage: typeof getImage } {
  return { getImage };
}
