// Durations as numbers or texts, and times.
//
// Guarantees: a text without a known unit is rejected. Non-goals: bounds, which the server has.

/** Duration: seconds, or a number with a unit, such as `15m`. */
export type Duration = number | `${number}${"s" | "m" | "h" | "d"}`;

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Returns a duration in whole seconds. @throws TypeError for other texts. */
export function secondsOf(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const seconds =
    typeof duration === "number" ? duration : Number(duration.slice(0, -1)) * (UNIT_SECONDS[duration.slice(-1)] ?? NaN);
  if (!Number.isFinite(seconds)) {
    throw new TypeError(`A duration is a number of seconds, or a text such as "15m": ${JSON.stringify(duration)}`);
  }
  return Math.round(seconds);
}

/** Returns settings with a lifetime and a time as the server accepts them; absent fields stay absent. */
export function withTimes<T extends { expiresIn?: Duration | null; expiresAt?: Date | string | null }>(
  settings: T,
): Omit<T, "expiresIn" | "expiresAt"> & { expiresIn?: number | null; expiresAt?: string | null } {
  const { expiresIn, expiresAt, ...rest } = settings;
  return {
    ...rest,
    ...(expiresIn !== undefined && { expiresIn: expiresIn === null ? null : secondsOf(expiresIn) }),
    ...(expiresAt !== undefined && { expiresAt: timeOf(expiresAt) }),
  };
}

/** Returns a time as the server accepts it. */
export function timeOf<T extends string | null | undefined>(time: Date | T): string | T {
  return time instanceof Date ? time.toISOString() : time;
}
