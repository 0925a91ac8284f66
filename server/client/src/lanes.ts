// Bounded concurrency.
//
// Guarantees: results have the order of the items. Non-goals: retries.

/** Runs work for all items, some at once, and returns the results. The first error stops the items that wait. */
export async function inLanes<T, R>(
  items: T[],
  laneCount: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const waiting = items.entries();
  let hasFailed = false;
  const lane = async () => {
    for (const [index, item] of waiting) {
      if (hasFailed) return;
      try {
        results[index] = await work(item, index);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, laneCount) }, lane));
  return results;
}
