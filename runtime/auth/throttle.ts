import { ApiError } from '../../shared/http/api-error.ts'

export interface ThrottleOptions {
  tries: number
  windowMs: number
  monotonic: () => number
  /** Called with the names of each try that is counted here. */
  counted?: ((of: readonly string[]) => void) | undefined
  /** Most names that are remembered; the one that tried longest ago is forgotten first. */
  names?: number
}

export type Throttle = ReturnType<typeof throttle>

/** Ten tries a minute, for each address and each email. */
export const throttleOfLogins = (monotonic: () => number, counted?: ThrottleOptions['counted']): Throttle =>
  throttle({ tries: 10, windowMs: 60_000, monotonic, counted })

/**
 * So many tries per name in any window of time; a try that is refused does not count. Kept by each process on its own; processes of one
 * service note the tries of each other.
 */
export function throttle({ tries, windowMs, monotonic, counted, names = 10_000 }: ThrottleOptions) {
  const seen = new Map<string, number[]>()

  function recent(name: string, now: number): number[] {
    return (seen.get(name) ?? []).filter(at => now - at < windowMs)
  }

  /** How long one of the names has no try left; 0: each has, and this one is counted under all of them. */
  function count(of: readonly string[]): number {
    const now = monotonic()
    const lists = of.map(name => recent(name, now))
    const full = lists.filter(list => list.length >= tries)
    if (full.length > 0) return Math.max(1, ...full.map(list => list.at(-tries)! + windowMs - now))
    add(of, lists, now)
    counted?.(of)
    return 0
  }

  function add(of: readonly string[], lists: readonly number[][], now: number): void {
    of.forEach((name, at) => {
      seen.delete(name)
      seen.set(name, [...lists[at]!, now])
    })
    for (const name of seen.keys()) {
      if (seen.size <= names) break
      seen.delete(name)
    }
  }

  return {
    /** Counts one try under every name, or throws `throttled` when one of them has used up its tries. */
    take(...of: readonly string[]): void {
      const waitMs = count(of)
      if (waitMs === 0) return
      const seconds = Math.max(1, Math.ceil(waitMs / 1000))
      throw new ApiError('throttled', `too many attempts: wait ${seconds} seconds and try again`, {
        headers: { 'retry-after': String(seconds) },
      })
    },

    /** A try that another process counted. */
    note(...of: readonly string[]): void {
      const now = monotonic()
      const lists = of.map(name => recent(name, now))
      add(of, lists, now)
    },

    /** The same without a throw: whether there was a try left. */
    hasTaken: (...of: readonly string[]): boolean => count(of) === 0,
  }
}
