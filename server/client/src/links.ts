// Shared links: pages with files, or pages that request files, for people without an account.
//
// Guarantees: times are accepted as `Date`, durations with units. Non-goals: the pages.

import type { Call, Connection } from "./connection.ts";
import { withTimes } from "./durations.ts";
import type { Duration } from "./durations.ts";
import { requestApi } from "./request.ts";
import type { Schemas } from "./types.gen.ts";

export type Link = Schemas["LinkView"];
export type LinkKind = Schemas["LinkKind"];
export type LinkState = Schemas["LinkState"];
/** Settings of a shared link; `null` for no expiry, password or maximum. */
export type LinkSettings = Omit<Schemas["LinkEditRequest"], "ended" | "expiresIn" | "expiresAt"> & {
  /** Lifetime from now, 60 seconds to ten years; by default 7 days. */
  expiresIn?: Duration | null;
  /** Expiry instead of `expiresIn`. */
  expiresAt?: Date | string | null;
};
/** Shared link to create: files, and folders, which end in `/`; the folder of an `upload` link, which requests files. */
export type NewLink = LinkSettings & { kind?: LinkKind; paths: string[] };

/** Shared links of the account, in all buckets. */
export class Links {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Lists links, newest first. */
  async *list({ kind, state, signal }: Call & { kind?: LinkKind; state?: LinkState } = {}): AsyncIterableIterator<Link> {
    let cursor: string | undefined;
    do {
      const page = await requestApi(this.#connection, "GET", "/api/links", { query: { kind, state, cursor }, signal });
      yield* page.links;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Returns a link. */
  async get(id: string, { signal }: Call = {}): Promise<Link> {
    return (await requestApi(this.#connection, "GET", "/api/links/{id}", { path: { id }, signal })).link;
  }

  /** Changes settings of a link. An ended one is 409 `link_ended`. */
  async edit(id: string, change: LinkSettings, { signal }: Call = {}): Promise<Link> {
    const input = { path: { id }, body: withTimes(change), signal };
    return (await requestApi(this.#connection, "PATCH", "/api/links/{id}", input)).link;
  }

  /** Ends a link: everyone who has it loses access at once. */
  async end(id: string, { signal }: Call = {}): Promise<void> {
    await requestApi(this.#connection, "DELETE", "/api/links/{id}", { path: { id }, signal });
  }

  /** Reopens a link that was ended less than 60 seconds ago, otherwise 409 `link_ended`. */
  async reopen(id: string, { signal }: Call = {}): Promise<Link> {
    const input = { path: { id }, body: { ended: false }, signal };
    return (await requestApi(this.#connection, "PATCH", "/api/links/{id}", input)).link;
  }
}

/** Shared links of a bucket. */
export class BucketLinks {
  readonly #connection: Connection;
  readonly #bucketName: string;

  constructor(connection: Connection, bucketName: string) {
    this.#connection = connection;
    this.#bucketName = bucketName;
  }

  /** Creates a link to a page with files and folders, or to one that requests files. */
  async create({ kind, paths, ...settings }: NewLink, { signal }: Call = {}): Promise<Link> {
    const input = { path: { bucketName: this.#bucketName }, body: { ...(kind && { kind }), paths, ...withTimes(settings) }, signal };
    return (await requestApi(this.#connection, "POST", "/api/buckets/{bucketName}/links", input)).link;
  }

  /** Lists links, newest first: all, or those that include a file or folder, `exact` only this one; `own` only those of the caller. */
  async *list(options: Call & { kind?: LinkKind; state?: LinkState; path?: string; exact?: boolean; own?: boolean } = {}): AsyncIterableIterator<Link> {
    const { signal, ...filter } = options;
    const path = { bucketName: this.#bucketName };
    let cursor: string | undefined;
    do {
      const input = { path, query: { ...filter, cursor }, signal };
      const page = await requestApi(this.#connection, "GET", "/api/buckets/{bucketName}/links", input);
      yield* page.links;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }
}
