/*! @trug/client 0.1.0, MIT OR Apache-2.0 */
/** Options of an image variant. Images are never enlarged. */
interface Transform {
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
type UrlOptions = Transform & {
	download?: boolean | string;
};
/** Query parameters; those that are absent, `null` or `undefined` are omitted. */
type QueryValues = Record<string, string | number | boolean | null | undefined>;
/**
 * Encodes a path, segment by segment.
 *
 * @throws TrugError `bad_path` for a segment `.` or `..`: a URL parser would resolve it to another path.
 */
declare function encodePath(path: string): string;
/** Returns a URL with further query parameters. */
declare function withQuery(url: string, values: QueryValues): string;
/** Returns the URL with its options. Options other than those of {@link UrlOptions} are dropped. */
declare function withOptions(url: string, { width, height, fit, format, quality, dpr, download }?: UrlOptions): string;
/** Returns the `srcset` of a file for these widths in pixels. */
declare function srcsetOf(url: string, widths: number[], transform: Transform): string;
/** Returns a loader of the images of a bucket. `baseUrl` is the URL of the bucket; `format` is `auto` by default. */
export declare function loader(baseUrl: string, { format }?: {
	format?: Transform["format"];
}): (image: {
	src: string;
	width: number;
	quality?: number;
}) => string;
export {};
