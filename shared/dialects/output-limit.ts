/**
 * The limit of an answer's tokens that holds whichever of several a host reads: the largest, and none where one is zero or below, which means
 * "no limit" to some hosts. Infinity stands for none until the whole request has been read.
 */
export function looserLimit(known: number | undefined, next: number | undefined): number | undefined {
  return next === undefined ? known : Math.max(known ?? 0, next > 0 ? next : Number.POSITIVE_INFINITY)
}

export const limitOf = (loosest: number | undefined): number | undefined =>
  loosest === Number.POSITIVE_INFINITY ? undefined : loosest
