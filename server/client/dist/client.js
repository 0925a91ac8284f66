/*! @trug/client 0.1.0, MIT OR Apache-2.0 */
const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 };
function secondsOf(duration) {
	if (duration === undefined)
		return undefined;
	const seconds = typeof duration === "number" ? duration : Number(duration.slice(0, -1)) * (UNIT_SECONDS[duration.slice(-1)] ?? NaN);
	if (!Number.isFinite(seconds)) {
		throw new TypeError(`A duration is a number of seconds, or a text such as "15m": ${JSON.stringify(duration)}`);
	}
	return Math.round(seconds);
}
function withTimes(settings) {
	const { expiresIn, expiresAt, ...rest } = settings;
	return {
		...rest,
		...(expiresIn !== undefined && { expiresIn: expiresIn === null ? null : secondsOf(expiresIn) }),
		...(expiresAt !== undefined && { expiresAt: timeOf(expiresAt) }),
	};
}
function timeOf(time) {
	return time instanceof Date ? time.toISOString() : time;
}
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
async function inLanes(items, laneCount, work) {
	const results = [];
	const waiting = items.entries();
	let hasFailed = false;
	const lane = async () => {
		for (const [index, item] of waiting) {
			if (hasFailed)
				return;
			try {
				results[index] = await work(item, index);
			}
			catch (error) {
				hasFailed = true;
				throw error;
			}
		}
	};
	await Promise.all(Array.from({ length: Math.max(1, laneCount) }, lane));
	return results;
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
function requestApi(connection, method, path, input, isRepeatable) {
	const { path: names = {}, query = {}, body, signal } = input;
	const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
		const value = names[name] ?? "";
		return name === "path" ? encodePath(value) : encodePath(value).replaceAll("/", "%2F");
	});
	const url = withQuery(connection.url + filled, query);
	const isJson = typeof body === "object" && body !== null && [Object.prototype, null].includes(Object.getPrototypeOf(body));
	const request = isJson
		? { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }
		: { body: body };
	return connection.send({ method, url, signal, isRepeatable, ...request }, (response) => response.json());
}
class Links {
	#connection;
	constructor(connection) {
		this.#connection = connection;
	}
	async *list({ kind, state, signal } = {}) {
		let cursor;
		do {
			const page = await requestApi(this.#connection, "GET", "/api/links", { query: { kind, state, cursor }, signal });
			yield* page.links;
			cursor = page.nextCursor ?? undefined;
		} while (cursor !== undefined);
	}
	async get(id, { signal } = {}) {
		return (await requestApi(this.#connection, "GET", "/api/links/{id}", { path: { id }, signal })).link;
	}
	async edit(id, change, { signal } = {}) {
		const input = { path: { id }, body: withTimes(change), signal };
		return (await requestApi(this.#connection, "PATCH", "/api/links/{id}", input)).link;
	}
	async end(id, { signal } = {}) {
		await requestApi(this.#connection, "DELETE", "/api/links/{id}", { path: { id }, signal });
	}
	async reopen(id, { signal } = {}) {
		const input = { path: { id }, body: { ended: false }, signal };
		return (await requestApi(this.#connection, "PATCH", "/api/links/{id}", input)).link;
	}
}
class BucketLinks {
	#connection;
	#bucketName;
	constructor(connection, bucketName) {
		this.#connection = connection;
		this.#bucketName = bucketName;
	}
	async create({ kind, paths, ...settings }, { signal } = {}) {
		const input = { path: { bucketName: this.#bucketName }, body: { ...(kind && { kind }), paths, ...withTimes(settings) }, signal };
		return (await requestApi(this.#connection, "POST", "/api/buckets/{bucketName}/links", input)).link;
	}
	async *list(options = {}) {
		const { signal, ...filter } = options;
		const path = { bucketName: this.#bucketName };
		let cursor;
		do {
			const input = { path, query: { ...filter, cursor }, signal };
			const page = await requestApi(this.#connection, "GET", "/api/buckets/{bucketName}/links", input);
			yield* page.links;
			cursor = page.nextCursor ?? undefined;
		} while (cursor !== undefined);
	}
}
async function sourceOf(body, name) {
	const { name: ownName } = body;
	const stream = body instanceof ReadableStream ? await new Response(body).blob() : body;
	return { blob: stream instanceof Blob ? stream : new Blob([stream]), name: ownName || name || "file" };
}
function describing(options) {
	const { cacheControl, contentDisposition, metadata, expiresIn, expiresAt } = options;
	return {
		cacheControl,
		contentDisposition,
		metadata: metadata && JSON.stringify(metadata),
		expiresIn: secondsOf(expiresIn),
		expiresAt: timeOf(expiresAt),
	};
}
function uploadForm(connection, target, source, options) {
	const { overwrite, randomizeName, thumbnail } = options;
	const url = `${connection.url}/${encodePath(target.bucket)}/${encodePath(target.path)}`;
	return postForm(connection, withQuery(url, { overwrite, randomizeName, thumbnail, ...describing(options) }), source, options, overwrite);
}
async function postForm(connection, url, { blob, name }, options, isRepeatable = false) {
	const boundary = `trug-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
	const escaped = name.replace(/["\r\n]/g, encodeURIComponent);
	const type = (options.contentType ?? blob.type).replace(/[\r\n]/g, "") || "application/octet-stream";
	const disposition = `Content-Disposition: form-data; name="file"; filename="${escaped}"`;
	const head = new Blob([`--${boundary}\r\n${disposition}\r\nContent-Type: ${type}\r\n\r\n`]);
	const body = new Blob([head, blob, `\r\n--${boundary}--\r\n`], { type: `multipart/form-data; boundary=${boundary}` });
	const report = reporter(blob.size, 0, options);
	const reply = await connection.send({ method: "POST", url, body, signal: options.signal, isRepeatable, onSent: (bytes) => report(bytes - head.size) }, (response) => response.json());
	report(blob.size);
	return reply.files[0];
}
function reporter(totalBytes, startBytes, { onProgress }) {
	const startMs = performance.now();
	let lastBytes = -1;
	return (bytes) => {
		const sentBytes = Math.max(0, Math.min(bytes, totalBytes));
		if (sentBytes === lastBytes)
			return;
		lastBytes = sentBytes;
		const seconds = Math.max(performance.now() - startMs, 1) / 1_000;
		const bytesPerSecond = Math.max(0, sentBytes - startBytes) / seconds;
		onProgress?.({ sentBytes, totalBytes, ratio: totalBytes === 0 ? 1 : sentBytes / totalBytes, bytesPerSecond });
	};
}
const PIECE_BYTES = 8 * 1_024 * 1_024;
const LOST_STATUSES = [401, 403, 404, 410];
class ResumableUpload {
	#connection;
	#target;
	#source;
	#options;
	#storage;
	#entry;
	constructor(connection, target, source, options) {
		this.#connection = connection;
		this.#target = target;
		this.#source = source;
		this.#options = options;
		const { blob, name } = source;
		const { lastModified } = blob;
		this.#storage = lastModified === undefined ? undefined : (options.storage ?? localStorageIfAny());
		const { overwrite, randomizeName, thumbnail, contentType } = options;
		const how = [overwrite, randomizeName, thumbnail, contentType, describing(options)];
		const identity = [connection.url, target.bucket, target.path, name, blob.type, blob.size, lastModified, how];
		this.#entry = `trug-upload:${JSON.stringify(identity)}`;
	}
	async run() {
		const { blob } = this.#source;
		let url = this.#storage?.getItem(this.#entry) ?? null;
		let state = url?.startsWith(this.#endpoint) ? await this.#state(url) : null;
		const report = reporter(blob.size, state?.offset ?? 0, this.#options);
		let reached = 0;
		for (let attempt = 0; !state?.headers.has("X-Object-Url");) {
			try {
				if (url === null || state === null) {
					url = await this.#create();
					state = { offset: 0, headers: new Headers() };
				}
				report(state.offset);
				state = await this.#append(url, state.offset, report);
			}
			catch (error) {
				if (!(error instanceof TrugError) || !mayContinue(error))
					throw error;
				await this.#connection.pause(error, attempt, this.#options.signal);
				attempt += 1;
				if (url !== null)
					state = await this.#state(url);
			}
			if (state !== null && state.offset > reached) {
				reached = state.offset;
				attempt = 0;
			}
		}
		this.#storage?.removeItem(this.#entry);
		report(blob.size);
		return this.#result(state.headers);
	}
	get #endpoint() {
		return `${this.#connection.url}/api/tus/`;
	}
	async #create() {
		const { overwrite, randomizeName, thumbnail, contentType } = this.#options;
		const { blob, name } = this.#source;
		const { bucket, path } = this.#target;
		const filetype = contentType ?? blob.type;
		const how = { overwrite, randomizeName, thumbnail, ...describing(this.#options) };
		const metadata = { bucketName: bucket, path, filename: name, filetype, ...how };
		const pairs = Object.entries(metadata).filter(([, value]) => value !== undefined && value !== "");
		const encoded = pairs.map(([key, value]) => `${key} ${base64(`${value}`)}`).join(",");
		const headers = { "Upload-Length": `${blob.size}`, "Upload-Metadata": encoded };
		const location = await this.#send("POST", this.#endpoint, (response) => response.headers.get("Location") ?? "", headers);
		const url = new URL(location, this.#endpoint).href;
		try {
			this.#storage?.setItem(this.#entry, url);
		}
		catch {
		}
		return url;
	}
	async #state(url) {
		try {
			return await this.#send("HEAD", url, stateOf);
		}
		catch (error) {
			if (!(error instanceof TrugError))
				throw error;
			if (error.status === 423)
				return { offset: this.#source.blob.size, headers: new Headers() };
			if (LOST_STATUSES.includes(error.status))
				return null;
			throw error;
		}
	}
	#append(url, offset, report) {
		const body = this.#source.blob.slice(offset, offset + PIECE_BYTES);
		const headers = {
			"Tus-Resumable": "1.0.0",
			"Upload-Offset": `${offset}`,
			"Content-Type": "application/offset+octet-stream",
		};
		const onSent = (bytes) => report(offset + bytes);
		return this.#connection.sendOnce({ method: "PATCH", url, headers, body, signal: this.#options.signal, onSent }, stateOf);
	}
	#send(method, url, read, headers) {
		const all = { "Tus-Resumable": "1.0.0", ...headers };
		return this.#connection.send({ method, url, headers: all, signal: this.#options.signal, isRepeatable: true }, read);
	}
	#result(headers) {
		const url = headers.get("X-Object-Url");
		const root = `/${this.#target.bucket}/`;
		const { pathname } = new URL(url);
		const key = decodeURIComponent(pathname.slice(pathname.indexOf(root) + root.length));
		return {
			name: key.split("/").at(-1),
			key,
			url,
			thumbnailUrl: headers.get("X-Thumbnail-Url"),
			size: this.#source.blob.size,
		};
	}
}
function uploadResumable(connection, target, source, options) {
	return new ResumableUpload(connection, target, source, options).run();
}
function stateOf({ headers }) {
	return { offset: Number(headers.get("Upload-Offset")), headers };
}
function mayContinue(error) {
	return (error.isRetryable || ["wrong_offset", "upload_locked", "upload_not_found", "upload_expired"].includes(error.code));
}
function base64(text) {
	return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
function localStorageIfAny() {
	try {
		return typeof document === "undefined" ? undefined : localStorage;
	}
	catch {
		return undefined;
	}
}
const RESUMABLE_BYTES = 16 * 1_024 * 1_024;
const LANES = 6;
class Bucket {
	name;
	links;
	#connection;
	constructor(connection, name) {
		this.#connection = connection;
		this.name = name;
		this.links = new BucketLinks(connection, name);
	}
	async upload(path, file, options = {}) {
		const source = await sourceOf(file, path.split("/").at(-1));
		const target = { bucket: this.name, path };
		const { resume = "auto" } = options;
		const isResumable = resume === "always" || (resume === "auto" && source.blob.size > RESUMABLE_BYTES);
		return (isResumable ? uploadResumable : uploadForm)(this.#connection, target, source, options);
	}
	uploadMany(folder, files, options = {}) {
		const { concurrency = 3, onFile, onProgress, ...rest } = options;
		const all = [...files];
		const parent = folder === "" || folder.endsWith("/") ? folder : `${folder}/`;
		const sum = onProgress && progressSum(all, (progress) => onProgress(progress));
		return inLanes(all, concurrency, async (file, index) => {
			let result;
			try {
				const ownProgress = sum && ((progress) => sum(index, progress.sentBytes));
				result = { file, ok: true, result: await this.upload(parent, file, { ...rest, onProgress: ownProgress }) };
			}
			catch (error) {
				if (!(error instanceof TrugError))
					throw error;
				result = { file, ok: false, error };
			}
			onFile?.(result);
			return result;
		});
	}
	download(path, options = {}) {
		const { range, signal } = options;
		const headers = range && { Range: `bytes=${range[0]}-${range[1] ?? ""}` };
		return this.#connection.send({ method: "GET", url: this.url(path, options), headers, signal }, (response) => response);
	}
	async *list(options = {}) {
		const { prefix = "", delimiter, signal } = options;
		let left = options.limit ?? Infinity;
		const order = delimiter && (prefix === "" || prefix.endsWith("/")) ? "folders" : undefined;
		let continuationToken;
		while (left > 0) {
			const maxKeys = Math.min(left, 1_000);
			const query = { bucketName: this.name, prefix, delimiter, order, continuationToken, maxKeys };
			const page = await requestApi(this.#connection, "GET", "/api/list-objects", { query, signal });
			for (const { Prefix } of page.CommonPrefixes)
				yield { type: "folder", key: Prefix };
			for (const { Key, Size, LastModified, ETag } of page.Contents) {
				yield { type: "file", key: Key, size: Size, lastModified: LastModified, etag: ETag };
			}
			left -= page.KeyCount;
			if (!page.NextContinuationToken)
				return;
			continuationToken = page.NextContinuationToken;
		}
	}
	search(q, options = {}) {
		const { signal, ...query } = options;
		return requestApi(this.#connection, "GET", "/api/search/{bucket}", {
			path: { bucket: this.name },
			query: { q, ...query },
			signal,
		});
	}
	async info(path, { signal } = {}) {
		const input = { path: { bucketName: this.name }, query: { path }, signal };
		return (await requestApi(this.#connection, "GET", "/api/buckets/{bucketName}/object", input)).object;
	}
	async edit(path, change, { signal } = {}) {
		const input = { path: { bucketName: this.name }, query: { path }, body: withTimes(change), signal };
		return (await requestApi(this.#connection, "PATCH", "/api/buckets/{bucketName}/object", input)).object;
	}
	move(from, to, options = {}) {
		return this.#relocate("move", from, to, options);
	}
	copy(from, to, options = {}) {
		return this.#relocate("copy", from, to, options);
	}
	async delete(paths, call = {}) {
		const all = typeof paths === "string" ? [paths] : paths;
		const counts = await inLanes(all, LANES, (path) => this.#deleteOne(path, call));
		return { deletedCount: counts.reduce((sum, count) => sum + count, 0) };
	}
	restore(path, options = {}) {
		const { signal, onConflict, lsn } = options;
		const input = { path: { bucketName: this.name }, body: { path, onConflict, lsn }, signal };
		return requestApi(this.#connection, "POST", "/api/buckets/{bucketName}/undelete", input);
	}
	uploadToken(path, options = {}) {
		const { signal, expiresIn, ...rest } = options;
		const query = { bucketName: this.name, path, expiresAt: secondsOf(expiresIn), ...rest };
		return requestApi(this.#connection, "GET", "/api/presigned-url", { query, signal });
	}
	async signedUrl(path, options = {}) {
		const body = { path, expiresIn: secondsOf(options.expiresIn) };
		const input = { path: { bucketName: this.name }, body, signal: options.signal };
		const { url, expiresAt } = await requestApi(this.#connection, "POST", "/api/buckets/{bucketName}/download-links", input, true);
		return { url: withOptions(url, options), expiresAt };
	}
	signedUrls(paths, options = {}) {
		return inLanes(paths, LANES, async (path) => {
			try {
				return { path, ...(await this.signedUrl(path, options)) };
			}
			catch (error) {
				if (!(error instanceof TrugError))
					throw error;
				return { path, error };
			}
		});
	}
	zip(paths, { name, signal } = {}) {
		const input = { path: { bucketName: this.name }, body: { paths, name }, signal };
		return requestApi(this.#connection, "POST", "/api/buckets/{bucketName}/zips", input, true);
	}
	async settings(change, { signal } = {}) {
		const path = { bucketName: this.name };
		const reply = change
			? await requestApi(this.#connection, "PATCH", "/api/buckets/{bucketName}", { path, body: change, signal })
			: await requestApi(this.#connection, "GET", "/api/buckets/{bucketName}", { path, signal });
		return reply.bucket;
	}
	url(path, options) {
		return withOptions(`${this.#connection.url}/${encodePath(this.name)}/${encodePath(path)}`, options);
	}
	srcset(path, options) {
		return srcsetOf(this.url(path), options.widths, options);
	}
	picture(path, options) {
		const { widths, sizes = "100vw", alt = "" } = options;
		const url = this.url(path);
		const sources = ["avif", "webp"].map((format) => ({
			type: `image/${format}`,
			srcset: srcsetOf(url, widths, { ...options, format }),
			sizes,
		}));
		const src = withOptions(url, { ...options, width: Math.max(...widths) });
		return { sources, img: { src, srcset: srcsetOf(url, widths, options), sizes, alt } };
	}
	async #deleteOne(path, { signal }) {
		const input = { path: { bucket: this.name, path }, signal };
		let count = 0;
		try {
			for (;;) {
				const reply = await requestApi(this.#connection, "DELETE", "/{bucket}/{path}", input);
				count += reply.deletedCount;
				if (!reply.isTruncated)
					return count;
			}
		}
		catch (error) {
			if (error instanceof TrugError && error.code === "file_not_found")
				return count;
			throw error;
		}
	}
	#relocate(how, from, to, { onConflict, signal }) {
		const input = { path: { bucketName: this.name }, body: { from, to, onConflict }, signal };
		return requestApi(this.#connection, "POST", `/api/buckets/{bucketName}/${how}`, input);
	}
}
function progressSum(files, onProgress) {
	const totalBytes = files.reduce((sum, file) => sum + file.size, 0);
	const sent = files.map(() => 0);
	const startMs = performance.now();
	return (index, bytes) => {
		sent[index] = bytes;
		const sentBytes = sent.reduce((sum, one) => sum + one, 0);
		const seconds = Math.max(performance.now() - startMs, 1) / 1_000;
		const ratio = totalBytes === 0 ? 1 : sentBytes / totalBytes;
		onProgress({ sentBytes, totalBytes, ratio, bytesPerSecond: sentBytes / seconds });
	};
}
const CHUNK_BYTES = 64 * 1_024;
const RETRIES = 5;
const TIMEOUT_MS = 60_000;
const PAUSE_MS = 500;
const PAUSE_MS_MAX = 30_000;
const RETRY_AFTER_MAX = 120;
let hasWarned = false;
class Connection {
	url;
	retries;
	#key;
	#fetch;
	#timeoutMs;
	constructor(options) {
		this.url = new URL(options.url).href.replace(/[?#].*$/, "").replace(/\/+$/, "");
		this.retries = options.retries ?? RETRIES;
		this.#key = options.key;
		this.#fetch = options.fetch;
		this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
		if (options.key && typeof document !== "undefined" && !hasWarned) {
			hasWarned = true;
			console.warn("@trug/client: this page contains an API key, which every visitor can read. Use upload tokens or signed URLs.");
		}
	}
	async send(request, read) {
		const isRepeatable = request.isRepeatable ?? request.method !== "POST";
		for (let attempt = 0;; attempt += 1) {
			let sentBytes = 0;
			const { onSent, body } = request;
			const observed = onSent && { ...request, onSent: (bytes) => onSent((sentBytes = bytes)) };
			try {
				return await this.sendOnce(observed ?? request, read);
			}
			catch (error) {
				if (!(error instanceof TrugError) || !error.isRetryable)
					throw error;
				const isIncomplete = onSent !== undefined && body instanceof Blob && sentBytes < body.size;
				if (error.status === 0 && !isRepeatable && !isIncomplete)
					throw error;
				await this.pause(error, attempt, request.signal);
			}
		}
	}
	async sendOnce(request, read) {
		const { signal } = request;
		signal?.throwIfAborted();
		const timer = new AbortController();
		const timeout = request.onSent ? undefined : setTimeout(() => timer.abort(), this.#timeoutMs);
		try {
			const response = await this.#perform(request, signal ? AbortSignal.any([signal, timer.signal]) : timer.signal);
			if (!response.ok)
				throw await errorOf(response);
			return await read(response);
		}
		catch (error) {
			signal?.throwIfAborted();
			if (error instanceof TrugError)
				throw error;
			const { message } = error;
			if (timer.signal.aborted)
				throw new TrugError(`No response within ${this.#timeoutMs} ms`, { status: 0, code: "timeout" });
			if (error instanceof SyntaxError)
				throw new TrugError(message, { status: 0, code: "invalid_response", cause: error });
			throw new TrugError(`No response from ${this.url}: ${message}`, {
				status: 0,
				code: "network_error",
				cause: error,
			});
		}
		finally {
			clearTimeout(timeout);
		}
	}
	async pause(error, attempt, signal) {
		const { retryAfter } = error;
		if (attempt >= this.retries || (retryAfter ?? 0) > RETRY_AFTER_MAX)
			throw error;
		const ms = Math.min(PAUSE_MS * 2 ** attempt, PAUSE_MS_MAX) * (0.5 + Math.random() / 2);
		await sleep(retryAfter === undefined ? ms : retryAfter * 1_000, signal);
	}
	#perform(request, signal) {
		const { method, url, onSent } = request;
		const headers = new Headers(request.headers);
		if (this.#key !== undefined && url.startsWith(`${this.url}/`))
			headers.set("Authorization", `Bearer ${this.#key}`);
		const hasXhr = typeof XMLHttpRequest !== "undefined";
		if (onSent && hasXhr && !this.#fetch)
			return sendByXhr(request, headers, signal, onSent);
		if (onSent && !hasXhr && !("ServiceWorkerGlobalScope" in globalThis)) {
			const blob = request.body;
			if (blob.type && !headers.has("Content-Type"))
				headers.set("Content-Type", blob.type);
			const init = { method, headers, signal, body: counted(blob, onSent), duplex: "half" };
			return (this.#fetch ?? fetch)(url, init);
		}
		return (this.#fetch ?? fetch)(url, { method, headers, signal, body: request.body });
	}
}
function sendByXhr(request, headers, signal, onSent) {
	return new Promise((resolve, reject) => {
		const xhr = new XMLHttpRequest();
		xhr.open(request.method, request.url);
		headers.forEach((value, name) => xhr.setRequestHeader(name, value));
		xhr.upload.onprogress = (event) => onSent(event.loaded);
		xhr.onload = () => {
			const received = new Headers();
			for (const line of xhr.getAllResponseHeaders().split("\r\n").filter(Boolean)) {
				const colon = line.indexOf(":");
				received.append(line.slice(0, colon), line.slice(colon + 1).trim());
			}
			resolve(new Response(xhr.status === 204 ? null : xhr.responseText, { status: xhr.status, headers: received }));
		};
		xhr.onerror = () => reject(new TypeError("the connection failed"));
		xhr.onabort = () => reject(new TypeError("aborted"));
		signal.addEventListener("abort", () => xhr.abort(), { once: true });
		xhr.send(request.body);
	});
}
function counted(blob, onSent) {
	let sentBytes = 0;
	const pull = async (controller) => {
		const chunk = new Uint8Array(await blob.slice(sentBytes, sentBytes + CHUNK_BYTES).arrayBuffer());
		if (chunk.byteLength === 0)
			return controller.close();
		controller.enqueue(chunk);
		sentBytes += chunk.byteLength;
		onSent(sentBytes);
	};
	return new ReadableStream({ pull }, { highWaterMark: 0 });
}
function sleep(ms, signal) {
	return new Promise((resolve, reject) => {
		const end = () => {
			clearTimeout(timer);
			reject(signal?.reason);
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener("abort", end);
			resolve();
		}, ms);
		signal?.addEventListener("abort", end, { once: true });
		if (signal?.aborted)
			end();
	});
}
class Trug {
	links;
	#connection;
	constructor(options) {
		this.#connection = new Connection(options);
		this.links = new Links(this.#connection);
	}
	bucket(name) {
		return new Bucket(this.#connection, name);
	}
	async *buckets({ signal } = {}) {
		let cursor;
		do {
			const page = await requestApi(this.#connection, "GET", "/api/buckets", { query: { cursor }, signal });
			yield* page.buckets;
			cursor = page.nextCursor ?? undefined;
		} while (cursor !== undefined);
	}
	async createBucket(name, settings = {}, { signal } = {}) {
		const body = { ...settings, bucketName: name };
		return (await requestApi(this.#connection, "POST", "/api/buckets", { body, signal })).bucket;
	}
	async deleteBucket(name, { force, signal } = {}) {
		const input = { path: { bucketName: name }, query: { force }, signal };
		const { deletedCount } = await requestApi(this.#connection, "DELETE", "/api/buckets/{bucketName}", input);
		return { deletedCount };
	}
	usage({ signal } = {}) {
		return requestApi(this.#connection, "GET", "/api/usage", { signal });
	}
	request(method, path, ...[input]) {
		return requestApi(this.#connection, method, path, input ?? {});
	}
	static async uploadWithToken(url, file, options = {}) {
		const { name, ...events } = options;
		const { blob, name: ownName } = await sourceOf(file);
		return postForm(new Connection({ url: new URL(url).origin }), url, { blob, name: name ?? ownName }, events, true);
	}
}
export { Trug };
export { Bucket };
export { TrugError };
export { BucketLinks, Links };
