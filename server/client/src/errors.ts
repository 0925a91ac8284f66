// Errors of the client.
//
// Guarantees: every failed request throws a `TrugError`; an aborted one throws the reason of its signal. Non-goals:
// when a request is repeated (`connection.ts`).

import type { Schemas } from "./types.gen.ts";

/**
 * Code of an error: one of the server's, or of the client. `network_error`: no complete response; `timeout`: no
 * response in time; `invalid_response`: a response that is not the server's, such as the error page of a proxy.
 */
export type ErrorCode = Schemas["ApiError"]["code"] | "network_error" | "timeout" | "invalid_response";

/** Values of a {@link TrugError}. */
export interface ErrorDetails {
  status: number;
  code: ErrorCode;
  parameter?: string;
  retryAfter?: number;
  requestId?: string;
  cause?: unknown;
}

/** Failed request. */
export class TrugError extends Error {
  /** HTTP status; 0 without a response. */
  readonly status: number;
  readonly code: ErrorCode;
  /** Name of the invalid parameter or field. */
  readonly parameter?: string;
  /** Seconds after which the request may be repeated. */
  readonly retryAfter?: number;
  /** ID of the request, as in the server's log. */
  readonly requestId?: string;

  constructor(message: string, details: ErrorDetails) {
    super(message, { cause: details.cause });
    this.name = "TrugError";
    this.status = details.status;
    this.code = details.code;
    this.parameter = details.parameter;
    this.retryAfter = details.retryAfter;
    this.requestId = details.requestId;
  }

  /** Whether the same request may succeed later: status 429 or 503, or no response. */
  get isRetryable(): boolean {
    return this.status === 429 || this.status === 503 || this.code === "network_error" || this.code === "timeout";
  }
}

/** Returns the error of a response. */
export async function errorOf(response: Response): Promise<TrugError> {
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

/** Parses the body of an error; `null` if it is not the server's. */
function parsed(text: string): Partial<Schemas["ApiError"]> | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
