// Operations on the files of a bucket.
//
// Guarantees: names of any characters are passed unchanged. Non-goals: settings of the account, which `request` covers.

import type { Call, Connection } from "./connection.ts";
import { secondsOf, withTimes } from "./durations.ts";
import type { Duration } from "./durations.ts";
import { TrugError } from "./errors.ts";
import { inLanes } from "./lanes.ts";
import { BucketLinks } from "./links.ts";
import { requestApi } from "./request.ts";
import type { Schemas } from "./types.gen.ts";
import { uploadResumable } from "./tus.ts";
import { sourceOf, uploadForm } from "./uploads.ts";
import type { Body, Progress, Uploaded, UploadOptions } from "./uploads.ts";
import { encodePath, srcsetOf, withOptions } from "./urls.ts";
import type { Transform, UrlOptions } from "./urls.ts";

export type BucketInfo = Schemas["BucketView"];
export type BucketSettings = Schemas["BucketSettings"];
/** Description of a file. */
export type ObjectInfo = Schemas["ObjectInfo"];
/** Change of a file; absent fields are unchanged, `null` restores the default. */
export type ObjectChange = Omit<Schemas["ObjectSettings"], "expiresIn" | "expiresAt"> & {
  expiresIn?: Duration | null;
  expiresAt?: Date | string | null;
};
export type SearchPage = Schemas["SearchReply"];
/** Location of a moved, copied or restored file. */
export type ObjectLocation = Omit<Schemas["MovedReply"], "success">;
/** One-time upload token. */
export type Token = Pick<Schemas["TokenReply"], "url" | "token" | "expiresIn" | "expiresAt">;
/** URL that reads one file of a private bucket without a key. */
export type SignedUrl = Omit<Schemas["DownloadLinkReply"], "success">;
/** Zip archive that can be downloaded: URL, number and bytes of its files. */
export type Archive = Omit<Schemas["ZipReply"], "success">;
/** File of a list. */
export interface FileEntry {
  type: "file";
  key: string;
  size: number;
  lastModified: string;
  etag: string;
}
/** Folder of a list; `key` ends in `/`. */
export interface FolderEntry {
  type: "folder";
  key: string;
}
/** Result of one file of {@link Bucket.uploadMany}. */
export type FileResult = { file: File; ok: true; result: Uploaded } | { file: File; ok: false; error: TrugError };
/** What to do if the destination exists; by default 409 `already_exists`. */
export type ConflictOptions = Call & { onConflict?: Schemas["OnConflict"] };
/** Attributes of `<picture>`. */
export interface Picture {
  sources: { type: string; srcset: string; sizes: string }[];
  img: { src: string; srcset: string; sizes: string; alt: string };
}
type SignOptions = Call & UrlOptions & { expiresIn?: Duration };

/** Length from which uploads are resumable by default. */
const RESUMABLE_BYTES = 16 * 1_024 * 1_024;
/** Requests at once of operations on many files. */
const LANES = 6;

/** Bucket of a server. Created by `Trug.bucket`, without a request. */
export class Bucket {
  readonly name: string;
  /** Shared links of the bucket. */
  readonly links: BucketLinks;
  readonly #connection: Connection;

  constructor(connection: Connection, name: string) {
    this.#connection = connection;
    this.name = name;
    this.links = new BucketLinks(connection, name);
  }

  /**
   * Uploads a file to a path, or under its own name into a folder, if the path is empty or ends in `/`. Content without
   * a name is called `file` there. A request that fails by 429, 503 or a lost connection is repeated, unless the server
   * may already have stored the file and `overwrite` is not set.
   */
  async upload(path: string, file: Body, options: UploadOptions = {}): Promise<Uploaded> {
    const source = await sourceOf(file, path.split("/").at(-1));
    const target = { bucket: this.name, path };
    const { resume = "auto" } = options;
    const isResumable = resume === "always" || (resume === "auto" && source.blob.size > RESUMABLE_BYTES);
    return (isResumable ? uploadResumable : uploadForm)(this.#connection, target, source, options);
  }

  /**
   * Uploads files into a folder, three at once by default. Files that fail are in the results; `onProgress` has the sum
   * of all files.
   */
  uploadMany(
    folder: string,
    files: Iterable<File>,
    options: UploadOptions & { concurrency?: number; onFile?(result: FileResult): void } = {},
  ): Promise<FileResult[]> {
    const { concurrency = 3, onFile, onProgress, ...rest } = options;
    const all = [...files];
    const parent = folder === "" || folder.endsWith("/") ? folder : `${folder}/`;
    const sum = onProgress && progressSum(all, (progress) => onProgress(progress));
    return inLanes(all, concurrency, async (file, index) => {
      let result: FileResult;
      try {
        const ownProgress = sum && ((progress: Progress) => sum(index, progress.sentBytes));
        result = { file, ok: true, result: await this.upload(parent, file, { ...rest, onProgress: ownProgress }) };
      } catch (error) {
        if (!(error instanceof TrugError)) throw error;
        result = { file, ok: false, error };
      }
      onFile?.(result);
      return result;
    });
  }

  /** Reads a file, or an image variant of it. `range` has the first and the last byte, counted from 0. */
  download(
    path: string,
    options: Call & Transform & { range?: [first: number, last?: number] } = {},
  ): Promise<Response> {
    const { range, signal } = options;
    const headers = range && { Range: `bytes=${range[0]}-${range[1] ?? ""}` };
    return this.#connection.send(
      { method: "GET", url: this.url(path, options), headers, signal },
      (response) => response,
    );
  }

  /** Lists files by key; with `delimiter`, the folders and files of one level. `limit` bounds the number of entries. */
  list(
    options: Call & { prefix?: string; delimiter: "/"; limit?: number },
  ): AsyncIterableIterator<FileEntry | FolderEntry>;
  list(options?: Call & { prefix?: string; limit?: number }): AsyncIterableIterator<FileEntry>;
  async *list(
    options: Call & { prefix?: string; delimiter?: "/"; limit?: number } = {},
  ): AsyncIterableIterator<FileEntry | FolderEntry> {
    const { prefix = "", delimiter, signal } = options;
    let left = options.limit ?? Infinity;
    const order = delimiter && (prefix === "" || prefix.endsWith("/")) ? "folders" : undefined;
    let continuationToken: string | undefined;
    while (left > 0) {
      const maxKeys = Math.min(left, 1_000);
      const query = { bucketName: this.name, prefix, delimiter, order, continuationToken, maxKeys } as const;
      const page = await requestApi(this.#connection, "GET", "/api/list-objects", { query, signal });
      for (const { Prefix } of page.CommonPrefixes) yield { type: "folder", key: Prefix };
      for (const { Key, Size, LastModified, ETag } of page.Contents) {
        yield { type: "file", key: Key, size: Size, lastModified: LastModified, etag: ETag };
      }
      left -= page.KeyCount;
      if (!page.NextContinuationToken) return;
      continuationToken = page.NextContinuationToken;
    }
  }

  /** Searches files and folders by name, tolerating typing errors. `limit` is 1 to 1,000, by default 20. */
  search(q: string, options: Call & { parent?: string; limit?: number; offset?: number } = {}): Promise<SearchPage> {
    const { signal, ...query } = options;
    return requestApi(this.#connection, "GET", "/api/search/{bucket}", {
      path: { bucket: this.name },
      query: { q, ...query },
      signal,
    });
  }

  /** Describes a file: type, size, headers, metadata, expiry, and camera data of a photograph. */
  async info(path: string, { signal }: Call = {}): Promise<ObjectInfo> {
    const input = { path: { bucketName: this.name }, query: { path }, signal };
    return (await requestApi(this.#connection, "GET", "/api/buckets/{bucketName}/object", input)).object;
  }

  /** Changes type, headers, metadata or expiry of a file. Content, ETag and times stay. */
  async edit(path: string, change: ObjectChange, { signal }: Call = {}): Promise<ObjectInfo> {
    const input = { path: { bucketName: this.name }, query: { path }, body: withTimes(change), signal };
    return (await requestApi(this.#connection, "PATCH", "/api/buckets/{bucketName}/object", input)).object;
  }

  /** Moves or renames a file. */
  move(from: string, to: string, options: ConflictOptions = {}): Promise<ObjectLocation> {
    return this.#relocate("move", from, to, options);
  }

  /** Copies a file. */
  copy(from: string, to: string, options: ConflictOptions = {}): Promise<ObjectLocation> {
    return this.#relocate("copy", from, to, options);
  }

  /**
   * Deletes files, and the content of folders: paths that end in `/`. Files that do not exist are not counted. Many
   * paths are deleted one by one: an error leaves some of them.
   */
  async delete(paths: string | string[], call: Call = {}): Promise<{ deletedCount: number }> {
    const all = typeof paths === "string" ? [paths] : paths;
    const counts = await inLanes(all, LANES, (path) => this.#deleteOne(path, call));
    return { deletedCount: counts.reduce((sum, count) => sum + count, 0) };
  }

  /** Restores the newest deleted version of a file, or the one with this `lsn`. */
  restore(
    path: string,
    options: ConflictOptions & { lsn?: number } = {},
  ): Promise<Omit<Schemas["UndeletedReply"], "success">> {
    const { signal, onConflict, lsn } = options;
    const input = { path: { bucketName: this.name }, body: { path, onConflict, lsn }, signal };
    return requestApi(this.#connection, "POST", "/api/buckets/{bucketName}/undelete", input);
  }

  /**
   * Creates a token for one upload without a key, into a folder (final `/`) or to one path. `expiresIn` is up to an
   * hour, the default; longer times mean an hour.
   */
  uploadToken(
    path: string,
    options: Call & { expiresIn?: Duration; overwrite?: boolean; randomizeName?: boolean; thumbnail?: boolean } = {},
  ): Promise<Token> {
    const { signal, expiresIn, ...rest } = options;
    const query = { bucketName: this.name, path, expiresAt: secondsOf(expiresIn), ...rest };
    return requestApi(this.#connection, "GET", "/api/presigned-url", { query, signal });
  }

  /**
   * Creates a URL that reads one file of a private bucket without a key, as an image variant where options are given.
   * `expiresIn` is up to a week, by default an hour.
   */
  async signedUrl(path: string, options: SignOptions = {}): Promise<SignedUrl> {
    const body = { path, expiresIn: secondsOf(options.expiresIn) };
    const input = { path: { bucketName: this.name }, body, signal: options.signal };
    const { url, expiresAt } = await requestApi(
      this.#connection,
      "POST",
      "/api/buckets/{bucketName}/download-links",
      input,
      true,
    );
    return { url: withOptions(url, options), expiresAt };
  }

  /** Creates such URLs for many files, in the order of the paths. Files that fail have an `error` instead. */
  signedUrls(
    paths: string[],
    options: SignOptions = {},
  ): Promise<(({ path: string; error?: undefined } & SignedUrl) | { path: string; error: TrugError })[]> {
    return inLanes(paths, LANES, async (path) => {
      try {
        return { path, ...(await this.signedUrl(path, options)) };
      } catch (error) {
        if (!(error instanceof TrugError)) throw error;
        return { path, error };
      }
    });
  }

  /**
   * Prepares a zip archive of files and folders (final `/`), up to 10,000 paths. Its URL needs no key and works for 5
   * minutes.
   */
  zip(paths: string[], { name, signal }: Call & { name?: string } = {}): Promise<Archive> {
    const input = { path: { bucketName: this.name }, body: { paths, name }, signal };
    return requestApi(this.#connection, "POST", "/api/buckets/{bucketName}/zips", input, true);
  }

  /** Returns the settings of the bucket, after the given change. */
  async settings(change?: BucketSettings, { signal }: Call = {}): Promise<BucketInfo> {
    const path = { bucketName: this.name };
    const reply = change
      ? await requestApi(this.#connection, "PATCH", "/api/buckets/{bucketName}", { path, body: change, signal })
      : await requestApi(this.#connection, "GET", "/api/buckets/{bucketName}", { path, signal });
    return reply.bucket;
  }

  /** Returns the URL of a file, without a request. */
  url(path: string, options?: UrlOptions): string {
    return withOptions(`${this.#connection.url}/${encodePath(this.name)}/${encodePath(path)}`, options);
  }

  /** Returns a `srcset` of image variants with these widths in pixels. */
  srcset(path: string, options: { widths: number[] } & Omit<Transform, "width">): string {
    return srcsetOf(this.url(path), options.widths, options);
  }

  /** Returns attributes of `<picture>`: AVIF and WebP sources, and the stored or given format for `<img>`. */
  picture(
    path: string,
    options: { widths: number[]; sizes?: string; alt?: string } & Omit<Transform, "width">,
  ): Picture {
    const { widths, sizes = "100vw", alt = "" } = options;
    const url = this.url(path);
    const sources = (["avif", "webp"] as const).map((format) => ({
      type: `image/${format}`,
      srcset: srcsetOf(url, widths, { ...options, format }),
      sizes,
    }));
    const src = withOptions(url, { ...options, width: Math.max(...widths) });
    return { sources, img: { src, srcset: srcsetOf(url, widths, options), sizes, alt } };
  }

  async #deleteOne(path: string, { signal }: Call): Promise<number> {
    const input = { path: { bucket: this.name, path }, signal };
    let count = 0;
    try {
      for (;;) {
        const reply = await requestApi(this.#connection, "DELETE", "/{bucket}/{path}", input);
        count += reply.deletedCount;
        if (!reply.isTruncated) return count;
      }
    } catch (error) {
      if (error instanceof TrugError && error.code === "file_not_found") return count;
      throw error;
    }
  }

  #relocate(
    how: "move" | "copy",
    from: string,
    to: string,
    { onConflict, signal }: ConflictOptions,
  ): Promise<ObjectLocation> {
    const input = { path: { bucketName: this.name }, body: { from, to, onConflict }, signal };
    return requestApi(this.#connection, "POST", `/api/buckets/{bucketName}/${how}`, input);
  }
}

/** Returns a function that reports the sum of the progress of all files. */
function progressSum(files: File[], onProgress: (progress: Progress) => void): (index: number, bytes: number) => void {
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
