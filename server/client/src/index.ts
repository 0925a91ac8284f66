// Public API of the package.
//
// Guarantees: `dist/client.js` exports exactly these names. Non-goals: loaders of frameworks (`next.ts`, `nuxt.ts`).

export { Trug } from "./trug.ts";
export type { Usage } from "./trug.ts";
export { Bucket } from "./bucket.ts";
export type {
  Archive,
  BucketInfo,
  BucketSettings,
  ConflictOptions,
  FileEntry,
  FileResult,
  FolderEntry,
  ObjectChange,
  ObjectInfo,
  ObjectLocation,
  Picture,
  SearchPage,
  SignedUrl,
  Token,
} from "./bucket.ts";
export { TrugError } from "./errors.ts";
export type { ErrorCode } from "./errors.ts";
export type { Call, Options } from "./connection.ts";
export type { Duration } from "./durations.ts";
export { BucketLinks, Links } from "./links.ts";
export type { Link, LinkKind, LinkSettings, LinkState, NewLink } from "./links.ts";
export type { Input, Method, Output } from "./request.ts";
export type { Paths, Schemas } from "./types.gen.ts";
export type { Body, Progress, Uploaded, UploadEvents, UploadOptions } from "./uploads.ts";
export type { Transform, UrlOptions } from "./urls.ts";
