// Requests to a server: authentication, retries, time limits and progress.
//
// Guarantees: a key is sent to the server's own URL only; a request that may have taken effect is repeated only if that
// changes nothing; counted bytes were handed to the connection. Non-goals: what is requested.

import { TrugError, errorOf } from "./errors.ts";

/** Options of a client. */
export interface Options {
  /** URL of the server, such as `https://files.example.org`. */
  url: string;
  /** API key. Without one, pages of the server itself use their session. */
  key?: string;
  /** Replacement of the global `fetch`. In browsers it disables progress within a request. */
  fetch?: typeof fetch;
  /** Maximum number of repetitions of a request, by default 5. */
  retries?: number;
  /** Time limit of a response in milliseconds, by default 60,000. Uploads have none. */
  timeoutMs?: number;
}

/** Options of every call. */
export interface Call {
  /** Aborts the call, which then throws the reason of the signal. */
  signal?: AbortSignal;
}

/** Request of the client. */
export interface Outgoing extends Call {
  method: string;
  url: string;
  headers?: Record<string, string>;
  body?: Blob | FormData | string;
  /** Whether repeating it changes nothing, by default for every method but POST. */
  isRepeatable?: boolean;
  /** Receives the number of body bytes sent so far. The body is a Blob, and the time limit does not apply. */
  onSent?: (bytes: number) => void;
}

/** Length of a streamed chunk. */
const CHUNK_BYTES = 64 * 1_024;
const RETRIES = 5;
const TIMEOUT_MS = 60_000;
/** Pause before the first repetition in milliseconds; each further one is twice as long. */
const PAUSE_MS = 500;
const PAUSE_MS_MAX = 30_000;
/** Longest `Retry-After` to wait for, in seconds; for a longer one the error is thrown at once. */
const RETRY_AFTER_MAX = 120;

let hasWarned = false;

/** Server, and how to send requests to it. */
export class Connection {
  /** URL of the server, without a final slash. */
  readonly url: string;
  readonly retries: number;
  readonly #key: string | undefined;
  readonly #fetch: typeof fetch | undefined;
  readonly #timeoutMs: number;

  constructor(options: Options) {
    this.url = new URL(options.url).href.replace(/[?#].*$/, "").replace(/\/+$/, "");
    this.retries = options.retries ?? RETRIES;
    this.#key = options.key;
    this.#fetch = options.fetch;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    if (options.key && typeof document !== "undefined" && !hasWarned) {
      hasWarned = true;
      console.warn(
        "@trug/client: this page contains an API key, which every visitor can read. Use upload tokens or signed URLs.",
      );
    }
  }

  /** Sends a request, with repetitions, and returns what is read from its response. */
  async send<T>(request: Outgoing, read: (response: Response) => T | Promise<T>): Promise<T> {
    const isRepeatable = request.isRepeatable ?? request.method !== "POST";
    for (let attempt = 0; ; attempt += 1) {
      let sentBytes = 0;
      const { onSent, body } = request;
      const observed = onSent && { ...request, onSent: (bytes: number) => onSent((sentBytes = bytes)) };
      try {
        return await this.sendOnce(observed ?? request, read);
      } catch (error) {
        if (!(error instanceof TrugError) || !error.isRetryable) throw error;
        // A server cannot have processed a body that it did not receive completely.
        const isIncomplete = onSent !== undefined && body instanceof Blob && sentBytes < body.size;
        if (error.status === 0 && !isRepeatable && !isIncomplete) throw error;
        await this.pause(error, attempt, request.signal);
      }
    }
  }

  /** Sends a request once. */
  async sendOnce<T>(request: Outgoing, read: (response: Response) => T | Promise<T>): Promise<T> {
    const { signal } = request;
    signal?.throwIfAborted();
    const timer = new AbortController();
    const timeout = request.onSent ? undefined : setTimeout(() => timer.abort(), this.#timeoutMs);
    try {
      const response = await this.#perform(request, signal ? AbortSignal.any([signal, timer.signal]) : timer.signal);
      if (!response.ok) throw await errorOf(response);
      return await read(response);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof TrugError) throw error;
      const { message } = error as Error;
      if (timer.signal.aborted)
        throw new TrugError(`No response within ${this.#timeoutMs} ms`, { status: 0, code: "timeout" });
      if (error instanceof SyntaxError)
        throw new TrugError(message, { status: 0, code: "invalid_response", cause: error });
      throw new TrugError(`No response from ${this.url}: ${message}`, {
        status: 0,
        code: "network_error",
        cause: error,
      });
    } finally {
      clearTimeout(timeout);
    }
  }

  /**
   * Waits before a repetition: as long as the server requests, or longer each time.
   *
   * @throws TrugError the given one, after the last repetition, or if the server requests to wait for too long.
   */
  async pause(error: TrugError, attempt: number, signal?: AbortSignal): Promise<void> {
    const { retryAfter } = error;
    if (attempt >= this.retries || (retryAfter ?? 0) > RETRY_AFTER_MAX) throw error;
    const ms = Math.min(PAUSE_MS * 2 ** attempt, PAUSE_MS_MAX) * (0.5 + Math.random() / 2);
    await sleep(retryAfter === undefined ? ms : retryAfter * 1_000, signal);
  }

  #perform(request: Outgoing, signal: AbortSignal): Promise<Response> {
    const { method, url, onSent } = request;
    const headers = new Headers(request.headers);
    if (this.#key !== undefined && url.startsWith(`${this.url}/`)) headers.set("Authorization", `Bearer ${this.#key}`);
    const hasXhr = typeof XMLHttpRequest !== "undefined";
    if (onSent && hasXhr && !this.#fetch) return sendByXhr(request, headers, signal, onSent);
    // Service workers and pages have no streamed request bodies over HTTP/1.1.
    if (onSent && !hasXhr && !("ServiceWorkerGlobalScope" in globalThis)) {
      const blob = request.body as Blob;
      if (blob.type && !headers.has("Content-Type")) headers.set("Content-Type", blob.type);
      const init = { method, headers, signal, body: counted(blob, onSent), duplex: "half" };
      return (this.#fetch ?? fetch)(url, init as RequestInit);
    }
    return (this.#fetch ?? fetch)(url, { method, headers, signal, body: request.body });
  }
}

/** Sends a request with upload progress in a browser. */
function sendByXhr(
  request: Outgoing,
  headers: Headers,
  signal: AbortSignal,
  onSent: (bytes: number) => void,
): Promise<Response> {
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

/** Returns the content as a stream of small chunks, which counts the bytes that the connection takes from it. */
function counted(blob: Blob, onSent: (bytes: number) => void): ReadableStream<Uint8Array> {
  let sentBytes = 0;
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const chunk = new Uint8Array(await blob.slice(sentBytes, sentBytes + CHUNK_BYTES).arrayBuffer());
    if (chunk.byteLength === 0) return controller.close();
    controller.enqueue(chunk);
    sentBytes += chunk.byteLength;
    onSent(sentBytes);
  };
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
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
    if (signal?.aborted) end();
  });
}
