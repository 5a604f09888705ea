export const DAY_MS = 86_400_000

/** Days in UTC, counted from 1970. */
export const dayOf = (ms: number): number => Math.floor(ms / DAY_MS)
