/*! @trug/client 0.1.0, MIT OR Apache-2.0 */
class TrugError extends Error {
	status;
	code;
	parameter;
	retryAfter;
	requestId;
	constructor(message, details) {
		super(message, { cause: details.cause });
		this.name = "TrugError";
		this.status = details.status;
		this.code = details.code;
		this.parameter = details.parameter;
		this.retryAfter = details.retryAfter;
		this.requestId = details.requestId;
	}
	get isRetryable() {
		return this.status === 429 || this.status === 503 || this.code === "network_error" || this.code === "timeout";
	}
}
async function errorOf(response) {
	const text = await response.text();
	const body = parsed(text);
	const seconds = Number(response.headers.get("Retry-After") ?? body?.retryAfter);
	return new TrugError(body?.error ?? `HTTP status ${response.status}`, {
		status: response.status,
		code: body?.code ?? "invalid_response",
		parameter: body?.parameter,
		retryAfter: seconds > 0 ? seconds : undefined,
		requestId: body?.requestId ?? response.headers.get("X-Request-Id") ?? undefined,
	});
}
function parsed(text) {
	try {
		return JSON.parse(text);
	}
	catch {
		return null;
	}
}
function encodePath(path) {
	const segments = path.split("/");
	if (segments.some((segment) => segment === "." || segment === "..")) {
		throw new TrugError(`Path segments "." and ".." are not allowed: ${JSON.stringify(path)}`, {
			status: 400,
			code: "bad_path",
		});
	}
	return segments.map(encodeURIComponent).join("/");
}
function withQuery(url, values) {
	const isGiven = ([, value]) => value !== undefined && value !== null;
	const pairs = Object.entries(values)
		.filter(isGiven)
		.map(([name, value]) => [name, String(value)]);
	if (pairs.length === 0)
		return url;
	return `${url}${url.includes("?") ? "&" : "?"}${new URLSearchParams(pairs)}`;
}
function withOptions(url, { width, height, fit, format, quality, dpr, download } = {}) {
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
function srcsetOf(url, widths, transform) {
	return widths.map((width) => `${withOptions(url, { ...transform, width })} ${width}w`).join(", ");
}
function imageUrl(bucketUrl, src, transform) {
	const root = bucketUrl.replace(/\/+$/, "");
	const isAbsolute = /^[a-z][a-z0-9+.-]*:/i.test(src);
	if (isAbsolute && !src.startsWith(`${root}/`))
		return src;
	return withOptions(isAbsolute ? src : `${root}/${encodePath(src.replace(/^\/+/, ""))}`, transform);
}
const FITS = { inside: "contain", outside: "cover" };
export function getImage(src, { modifiers = {}, baseURL }) {
	const fit = FITS[modifiers.fit ?? ""] ?? modifiers.fit;
	return { url: imageUrl(baseURL, src, { format: "auto", ...modifiers, fit }) };
}
export default function provider() {
	return { getImage };
}
