// Resumable uploads by tus 1.0, in pieces.
//
// Guarantees: an upload continues where the server has it after lost connections, server restarts and, for a `File`, in
// a later call; a lost response never stores a file twice. Non-goals: several pieces at once.

import type { Connection, Outgoing } from "./connection.ts";
import { TrugError } from "./errors.ts";
import { describing, reporter } from "./uploads.ts";
import type { Source, Target, Uploaded, UploadOptions } from "./uploads.ts";

/** Length of a piece. */
const PIECE_BYTES = 8 * 1_024 * 1_024;
/** Statuses of HEAD after which the upload is created again: it does not exist for this caller. */
const LOST_STATUSES = [401, 403, 404, 410];

/** State of an upload at the server. */
interface State {
  offset: number;
  headers: Headers;
}

/** One resumable upload. */
class ResumableUpload {
  readonly #connection: Connection;
  readonly #target: Target;
  readonly #source: Source;
  readonly #options: UploadOptions;
  readonly #storage: UploadOptions["storage"];
  /** Name in the storage. */
  readonly #entry: string;

  constructor(connection: Connection, target: Target, source: Source, options: UploadOptions) {
    this.#connection = connection;
    this.#target = target;
    this.#source = source;
    this.#options = options;
    const { blob, name } = source;
    // Content without a modification time cannot be recognized in a later call.
    const { lastModified } = blob as Partial<File>;
    this.#storage = lastModified === undefined ? undefined : (options.storage ?? localStorageIfAny());
    const { overwrite, randomizeName, thumbnail, contentType } = options;
    const how = [overwrite, randomizeName, thumbnail, contentType, describing(options)];
    const identity = [connection.url, target.bucket, target.path, name, blob.type, blob.size, lastModified, how];
    this.#entry = `trug-upload:${JSON.stringify(identity)}`;
  }

  async run(): Promise<Uploaded> {
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
        // An upload with all bytes that is not stored yet is stored by an empty piece.
        state = await this.#append(url, state.offset, report);
      } catch (error) {
        if (!(error instanceof TrugError) || !mayContinue(error)) throw error;
        await this.#connection.pause(error, attempt, this.#options.signal);
        attempt += 1;
        if (url !== null) state = await this.#state(url);
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

  get #endpoint(): string {
    return `${this.#connection.url}/api/tus/`;
  }

  /** Creates the upload, and returns its URL. A repetition leaves an empty upload, which expires. */
  async #create(): Promise<string> {
    const { overwrite, randomizeName, thumbnail, contentType } = this.#options;
    const { blob, name } = this.#source;
    const { bucket, path } = this.#target;
    const filetype = contentType ?? blob.type;
    const how = { overwrite, randomizeName, thumbnail, ...describing(this.#options) };
    const metadata = { bucketName: bucket, path, filename: name, filetype, ...how };
    const pairs = Object.entries(metadata).filter(([, value]) => value !== undefined && value !== "");
    const encoded = pairs.map(([key, value]) => `${key} ${base64(`${value}`)}`).join(",");
    const headers = { "Upload-Length": `${blob.size}`, "Upload-Metadata": encoded };
    const location = await this.#send(
      "POST",
      this.#endpoint,
      (response) => response.headers.get("Location") ?? "",
      headers,
    );
    const url = new URL(location, this.#endpoint).href;
    try {
      this.#storage?.setItem(this.#entry, url);
    } catch {
      // A full storage: a later call cannot continue this upload.
    }
    return url;
  }

  /** Returns the state of the upload, or `null` if it no longer exists. */
  async #state(url: string): Promise<State | null> {
    try {
      return await this.#send("HEAD", url, stateOf);
    } catch (error) {
      if (!(error instanceof TrugError)) throw error;
      // Complete, and not stored because of a quota or a full disk; or in use by another request.
      if (error.status === 423) return { offset: this.#source.blob.size, headers: new Headers() };
      if (LOST_STATUSES.includes(error.status)) return null;
      throw error;
    }
  }

  /** Sends the next piece, once. */
  #append(url: string, offset: number, report: (bytes: number) => void): Promise<State> {
    const body = this.#source.blob.slice(offset, offset + PIECE_BYTES);
    const headers = {
      "Tus-Resumable": "1.0.0",
      "Upload-Offset": `${offset}`,
      "Content-Type": "application/offset+octet-stream",
    };
    const onSent = (bytes: number) => report(offset + bytes);
    return this.#connection.sendOnce(
      { method: "PATCH", url, headers, body, signal: this.#options.signal, onSent },
      stateOf,
    );
  }

  #send<T>(method: string, url: string, read: (response: Response) => T, headers?: Outgoing["headers"]): Promise<T> {
    const all = { "Tus-Resumable": "1.0.0", ...headers };
    return this.#connection.send({ method, url, headers: all, signal: this.#options.signal, isRepeatable: true }, read);
  }

  #result(headers: Headers): Uploaded {
    const url = headers.get("X-Object-Url")!;
    const root = `/${this.#target.bucket}/`;
    const { pathname } = new URL(url);
    const key = decodeURIComponent(pathname.slice(pathname.indexOf(root) + root.length));
    return {
      name: key.split("/").at(-1)!,
      key,
      url,
      thumbnailUrl: headers.get("X-Thumbnail-Url"),
      size: this.#source.blob.size,
    };
  }
}

/** Uploads a file to a path, or into a folder, in pieces. */
export function uploadResumable(
  connection: Connection,
  target: Target,
  source: Source,
  options: UploadOptions,
): Promise<Uploaded> {
  return new ResumableUpload(connection, target, source, options).run();
}

function stateOf({ headers }: Response): State {
  return { offset: Number(headers.get("Upload-Offset")), headers };
}

/** Whether an upload continues after this error of a piece, from the offset that the server reports. */
function mayContinue(error: TrugError): boolean {
  return (
    error.isRetryable || ["wrong_offset", "upload_locked", "upload_not_found", "upload_expired"].includes(error.code)
  );
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/** Returns the browser's storage, unless it is absent or forbidden. */
function localStorageIfAny(): UploadOptions["storage"] {
  try {
    return typeof document === "undefined" ? undefined : localStorage;
  } catch {
    return undefined;
  }
}
