// Uploads in one request, and what all uploads have in common.
//
// Guarantees: progress counts bytes of the file only, and ends at its length. Non-goals: resumable uploads (`tus.ts`).

import type { Call, Connection } from "./connection.ts";
import { secondsOf, timeOf } from "./durations.ts";
import type { Duration } from "./durations.ts";
import type { Schemas } from "./types.gen.ts";
import { encodePath, withQuery } from "./urls.ts";

/** Content of an upload. A stream is read into memory first, since its length must be known. */
export type Body = Blob | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array> | string;

/** Progress of an upload. */
export interface Progress {
  /** Bytes that were handed to the connection, including those of earlier calls that a resumed upload has. */
  sentBytes: number;
  totalBytes: number;
  /** Part that is sent, 0 to 1. */
  ratio: number;
  /** Average speed of this call. */
  bytesPerSecond: number;
}

/** Options of every upload. */
export interface UploadEvents extends Call {
  onProgress?(progress: Progress): void;
}

/** Options of an upload. */
export interface UploadOptions extends UploadEvents {
  /** Replaces an existing file; otherwise the new one gets a free name, such as `a (1).png`. */
  overwrite?: boolean;
  /** Names the file by a random UUID, with its extension. */
  randomizeName?: boolean;
  /** Whether to create a thumbnail of an image; by default the setting of the bucket. */
  thumbnail?: boolean;
  /** Media type; by default that of the `Blob`. The server detects known formats from their content. */
  contentType?: string;
  /** `Cache-Control` of the file; by default that of the bucket. */
  cacheControl?: string;
  /** `Content-Disposition` of the file. */
  contentDisposition?: string;
  /** User metadata: keys of a-z, 0-9, `.`, `_` and `-`, together 2,048 bytes. */
  metadata?: Record<string, string>;
  /** Lifetime of the file, 60 seconds to ten years. */
  expiresIn?: Duration;
  /** Expiry of the file, instead of `expiresIn`. */
  expiresAt?: Date | string;
  /** When to send the file in resumable pieces: over 16 MiB (`auto`, the default), always or never. */
  resume?: "auto" | "always" | "never";
  /** Storage of unfinished uploads of a `File`, by default `localStorage` where there is one. */
  storage?: Pick<Storage, "getItem" | "setItem" | "removeItem">;
}

/** Stored file. A resumable upload reports its name, key, URLs and size only. */
export type Uploaded = Pick<Schemas["UploadedFile"], "name" | "key" | "url" | "thumbnailUrl" | "size"> &
  Partial<Schemas["UploadedFile"]>;

/** Destination of a file in a bucket. */
export interface Target {
  bucket: string;
  /** Path of the file, or of a folder if it is empty or ends in `/`. */
  path: string;
}

/** File of an upload: its content, and its name at the client. */
export interface Source {
  blob: Blob;
  name: string;
}

/** Returns the content with its name: that of the `File`, the given one, or `file`. */
export async function sourceOf(body: Body, name?: string): Promise<Source> {
  const { name: ownName } = body as Partial<File>;
  const stream = body instanceof ReadableStream ? await new Response(body).blob() : body;
  return { blob: stream instanceof Blob ? stream : new Blob([stream as BlobPart]), name: ownName || name || "file" };
}

/** Returns the options that describe the stored file, as the server accepts them. */
export function describing(options: UploadOptions): Record<string, string | number | undefined> {
  const { cacheControl, contentDisposition, metadata, expiresIn, expiresAt } = options;
  return {
    cacheControl,
    contentDisposition,
    metadata: metadata && JSON.stringify(metadata),
    expiresIn: secondsOf(expiresIn),
    expiresAt: timeOf(expiresAt),
  };
}

/** Uploads a file to a path, or into a folder, by a form. */
export function uploadForm(
  connection: Connection,
  target: Target,
  source: Source,
  options: UploadOptions,
): Promise<Uploaded> {
  const { overwrite, randomizeName, thumbnail } = options;
  const url = `${connection.url}/${encodePath(target.bucket)}/${encodePath(target.path)}`;
  return postForm(connection, withQuery(url, { overwrite, randomizeName, thumbnail, ...describing(options) }), source, options, overwrite);
}

/** Posts a form with a file. Repeating it changes nothing if it replaces the file. */
export async function postForm(
  connection: Connection,
  url: string,
  { blob, name }: Source,
  options: UploadOptions,
  isRepeatable = false,
): Promise<Uploaded> {
  // Unlike `randomUUID`, this exists in pages that were loaded without TLS.
  const boundary = `trug-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  const escaped = name.replace(/["\r\n]/g, encodeURIComponent);
  const type = (options.contentType ?? blob.type).replace(/[\r\n]/g, "") || "application/octet-stream";
  const disposition = `Content-Disposition: form-data; name="file"; filename="${escaped}"`;
  const head = new Blob([`--${boundary}\r\n${disposition}\r\nContent-Type: ${type}\r\n\r\n`]);
  const body = new Blob([head, blob, `\r\n--${boundary}--\r\n`], { type: `multipart/form-data; boundary=${boundary}` });
  const report = reporter(blob.size, 0, options);
  const reply = await connection.send(
    { method: "POST", url, body, signal: options.signal, isRepeatable, onSent: (bytes) => report(bytes - head.size) },
    (response) => response.json() as Promise<Schemas["UploadReply"]>,
  );
  report(blob.size);
  return reply.files[0]!;
}

/** Returns a function that reports progress, given the bytes of the file sent so far. It reports each number once. */
export function reporter(
  totalBytes: number,
  startBytes: number,
  { onProgress }: UploadEvents,
): (bytes: number) => void {
  const startMs = performance.now();
  let lastBytes = -1;
  return (bytes) => {
    const sentBytes = Math.max(0, Math.min(bytes, totalBytes));
    if (sentBytes === lastBytes) return;
    lastBytes = sentBytes;
    const seconds = Math.max(performance.now() - startMs, 1) / 1_000;
    const bytesPerSecond = Math.max(0, sentBytes - startBytes) / seconds;
    onProgress?.({ sentBytes, totalBytes, ratio: totalBytes === 0 ? 1 : sentBytes / totalBytes, bytesPerSecond });
  };
}
