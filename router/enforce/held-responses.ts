import type { HeldState } from '../../shared/dialects/responses/held.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'

/** What is remembered at once; what was used longest ago is forgotten first. */
const MOST_KNOWN = 100_000
/** As long as a provider keeps a response. */
const MOST_AGE_MS = 30 * 24 * 3_600_000

/** Of what providers make; a longer one is remembered by its digest, so that what is remembered has a size. */
const LONGEST_ID = 256

/** Where a response was made. */
export interface Holder {
  provider: string
  /** `provider/model` as the config has it. */
  model: string
  sessionId: string
  /** What the conversation came to with it. */
  tokens: number
}

/** Who made what a request leaves to its provider to know. */
export interface Holding {
  /** Who made anything that it names or brings, as far as that is known. */
  makers: readonly Holder[]
  /** Those of them that hold the conversation it goes on with. */
  holders: readonly Holder[]
  /** The request names what this process knows nothing of. */
  hasUnknown: boolean
}

export type HeldResponses = ReturnType<typeof heldResponses>

/** The same where another process may know more. */
export interface SharedHeld {
  find(tenantId: string, state: HeldState): Holding | Promise<Holding>
  keep: HeldResponses['keep']
}

/**
 * Which provider and model made each response, its items and its sealed reasoning. Lives as long as the process: a request that names what is
 * not known starts where its route does.
 */
export function heldResponses(monotonic: () => number, sha256: Sha256) {
  const known = new Map<string, Holder & { at: number }>()
  const digest = (text: string) => sha256Hex(utf8(text), sha256)
  const keysOf = (tenantId: string, { ids, sealed }: HeldState): string[] => [
    ...ids.map(id => `${tenantId} ${id.length > LONGEST_ID ? `long ${digest(id)}` : id}`),
    ...sealed.map(text => `${tenantId} sealed ${digest(text)}`),
  ]

  return {
    find(tenantId: string, state: HeldState): Holding {
      const found = keysOf(tenantId, state).map(key => {
        const one = known.get(key)
        if (one === undefined || monotonic() - one.at > MOST_AGE_MS) return undefined
        known.delete(key)
        known.set(key, one)
        return one
      })
      const distinct = (some: typeof found) => [...new Set(some.filter(one => one !== undefined))]
      const named = found.slice(0, state.ids.length)
      return { makers: distinct(found), holders: distinct(named), hasUnknown: named.includes(undefined) }
    },
    keep(tenantId: string, state: HeldState, holder: Holder): void {
      const one = { ...holder, at: monotonic() }
      for (const key of keysOf(tenantId, state)) {
        known.delete(key)
        known.set(key, one)
      }
      for (const key of known.keys()) {
        if (known.size <= MOST_KNOWN) break
        known.delete(key)
      }
    },
  }
}

/** Input that a provider adds to a request from what it keeps: nothing says how much where that is not known. */
export const UNKNOWN_HISTORY_TOKENS = 200_000

export function heldTokens({ holders, hasUnknown }: Holding, maxInputTokens: number | null): number {
  // What the newest response came to includes the turns before it.
  const known = Math.max(0, ...holders.map(({ tokens }) => tokens))
  return hasUnknown ? Math.max(known, maxInputTokens ?? UNKNOWN_HISTORY_TOKENS) : known
}
