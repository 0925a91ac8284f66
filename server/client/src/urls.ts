// URLs of files, with transform options.
//
// Guarantees: a URL names exactly the given path, whatever characters it has; a path that would name something else is
// rejected. Non-goals: whether the file exists, and signatures of private buckets.

import { TrugError } from "./errors.ts";

/** Options of an image variant. Images are never enlarged. */
export interface Transform {
  /** Maximum width in pixels, 1 and above. */
  width?: number;
  /** Maximum height in pixels, 1 and above. */
  height?: number;
  /** With both sides: inside the box (`contain`, `scale-down`), cropped (`cover`) or stretched (`fill`). */
  fit?: "contain" | "scale-down" | "cover" | "fill";
  /** Output format; `auto` selects AVIF, WebP or the stored format by the `Accept` header. */
  format?: "auto" | "avif" | "webp" | "jpg" | "png" | "gif";
  /** 1 to 100. */
  quality?: number;
  /** Factor of `width` and `height`, above 0, at most 10. */
  dpr?: number;
}

/** Options of a URL: a transform, and `download` to save the file under its own or the given name. */
export type UrlOptions = Transform & { download?: boolean | string };

/** Query parameters; those that are absent, `null` or `undefined` are omitted. */
export type QueryValues = Record<string, string | number | boolean | null | undefined>;

/**
 * Encodes a path, segment by segment.
 *
 * @throws TrugError `bad_path` for a segment `.` or `..`: a URL parser would resolve it to another path.
 */
export function encodePath(path: string): string {
  const segments = path.split("/");
  if (segments.some((segment) => segment === "." || segment === "..")) {
    throw new TrugError(`Path segments "." and ".." are not allowed: ${JSON.stringify(path)}`, {
      status: 400,
      code: "bad_path",
    });
  }
  return segments.map(encodeURIComponent).join("/");
}

/** Returns a URL with further query parameters. */
export function withQuery(url: string, values: QueryValues): string {
  const isGiven = ([, value]: [string, unknown]) => value !== undefined && value !== null;
  const pairs = Object.entries(values)
    .filter(isGiven)
    .map(([name, value]) => [name, String(value)]);
  if (pairs.length === 0) return url;
  return `${url}${url.includes("?") ? "&" : "?"}${new URLSearchParams(pairs)}`;
}

/** Returns the URL with its options. Options other than those of {@link UrlOptions} are dropped. */
export function withOptions(
  url: string,
  { width, height, fit, format, quality, dpr, download }: UrlOptions = {},
): string {
  return withQuery(url, {
    width,
    height,
    fit,
    format,
    quality,
    dpr,
    download: download === false ? undefined : download,
  });
}

/** Returns the `srcset` of a file for these widths in pixels. */
export function srcsetOf(url: string, widths: number[], transform: Transform): string {
  return widths.map((width) => `${withOptions(url, { ...transform, width })} ${width}w`).join(", ");
}
