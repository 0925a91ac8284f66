// Client of a server.
//
// Guarantees: importing this module changes nothing and needs no global but those of browsers. Non-goals: operations on
// files (`bucket.ts`).

import { Bucket } from "./bucket.ts";
import type { BucketInfo } from "./bucket.ts";
import { Connection } from "./connection.ts";
import type { Call, Options } from "./connection.ts";
import { Links } from "./links.ts";
import { requestApi } from "./request.ts";
import type { Input, InputArgument, Method, Output } from "./request.ts";
import type { Paths, Schemas } from "./types.gen.ts";
import { postForm, sourceOf } from "./uploads.ts";
import type { Body, Uploaded, UploadEvents } from "./uploads.ts";

export type Usage = Schemas["UsageReply"];

/** Client of a server. */
export class Trug {
  /** Shared links of the account, in all buckets. */
  readonly links: Links;
  readonly #connection: Connection;

  /** @throws TypeError if the URL is invalid. */
  constructor(options: Options) {
    this.#connection = new Connection(options);
    this.links = new Links(this.#connection);
  }

  /** Returns a bucket, without a request. */
  bucket(name: string): Bucket {
    return new Bucket(this.#connection, name);
  }

  /** Lists the buckets of the account, by name. */
  async *buckets({ signal }: Call = {}): AsyncIterableIterator<BucketInfo> {
    let cursor: string | undefined;
    do {
      const page = await requestApi(this.#connection, "GET", "/api/buckets", { query: { cursor }, signal });
      yield* page.buckets;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Creates a bucket. A taken name is 409 `already_exists`. */
  async createBucket(
    name: string,
    settings: Omit<Schemas["NewBucketSettings"], "bucketName"> = {},
    { signal }: Call = {},
  ): Promise<BucketInfo> {
    const body = { ...settings, bucketName: name };
    return (await requestApi(this.#connection, "POST", "/api/buckets", { body, signal })).bucket;
  }

  /** Deletes a bucket. One with files is 409 `bucket_not_empty`, unless `force` is set. */
  async deleteBucket(
    name: string,
    { force, signal }: Call & { force?: boolean } = {},
  ): Promise<{ deletedCount: number }> {
    const input = { path: { bucketName: name }, query: { force }, signal };
    const { deletedCount } = await requestApi(this.#connection, "DELETE", "/api/buckets/{bucketName}", input);
    return { deletedCount };
  }

  /** Returns stored bytes and files of the account and its first 100 buckets, with their quotas. */
  usage({ signal }: Call = {}): Promise<Usage> {
    return requestApi(this.#connection, "GET", "/api/usage", { signal });
  }

  /**
   * Sends a request to any operation of the OpenAPI document with a JSON response, such as
   * `request("POST", "/api/jobs", { body })`. `{names}` of the path are given in `path`.
   */
  request<P extends keyof Paths, M extends Method<P>>(
    method: M,
    path: P,
    ...[input]: InputArgument<Input<P, M>>
  ): Promise<Output<P, M>> {
    return requestApi(this.#connection, method, path, input ?? ({} as Input<P, M>));
  }

  /**
   * Uploads a file to the URL of an upload token, without a key. A folder's token names the file `name`, by default as
   * the `File`. A request may be repeated, since the token stores one upload only: if the response of that was lost,
   * the error is 410 `token_used`.
   */
  static async uploadWithToken(
    url: string,
    file: Body,
    options: UploadEvents & { name?: string } = {},
  ): Promise<Uploaded> {
    const { name, ...events } = options;
    const { blob, name: ownName } = await sourceOf(file);
    return postForm(new Connection({ url: new URL(url).origin }), url, { blob, name: name ?? ownName }, events, true);
  }
}
