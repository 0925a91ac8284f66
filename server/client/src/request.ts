// Typed requests to any operation of the HTTP API.
//
// Guarantees: paths, parameters, bodies and results have the types of the OpenAPI document. Non-goals: uploads with
// progress, and downloads.

import type { Call, Connection, Outgoing } from "./connection.ts";
import type { Paths } from "./types.gen.ts";
import { encodePath, withQuery } from "./urls.ts";
import type { QueryValues } from "./urls.ts";

/** Methods of a path. */
export type Method<P extends keyof Paths> = keyof Paths[P] & string;
/** Parameters of an operation: `path`, `query` and `body`, as far as it has them. */
export type Input<P extends keyof Paths, M extends keyof Paths[P]> = Omit<Paths[P][M], "output"> & Call;
/** JSON response of an operation. */
export type Output<P extends keyof Paths, M extends keyof Paths[P]> = Paths[P][M] extends { output: infer O }
  ? O
  : never;
/** Parameters as an argument, which is optional if all of them are. */
export type InputArgument<I> = {} extends I ? [input?: I] : [input: I];

/** Parameters of any operation. */
interface AnyInput extends Call {
  path?: Record<string, string>;
  query?: QueryValues;
  body?: unknown;
}

/** Sends a request. `isRepeatable` marks a POST that changes nothing when it is repeated. */
export function requestApi<P extends keyof Paths, M extends Method<P>>(
  connection: Connection,
  method: M,
  path: P,
  input: Input<P, M>,
  isRepeatable?: boolean,
): Promise<Output<P, M>> {
  const { path: names = {}, query = {}, body, signal } = input as AnyInput;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = names[name] ?? "";
    // Only the path of a file has several segments.
    return name === "path" ? encodePath(value) : encodePath(value).replaceAll("/", "%2F");
  });
  const url = withQuery(connection.url + filled, query);
  const isJson =
    typeof body === "object" && body !== null && [Object.prototype, null].includes(Object.getPrototypeOf(body));
  const request = isJson
    ? { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }
    : { body: body as Outgoing["body"] };
  return connection.send({ method, url, signal, isRepeatable, ...request }, (response) => response.json());
}
