import { afterTurn, type CacheLedger, type CachingRung, type CountedCall, type Turn } from '../policy/cache-stay.ts'
import type { Session } from '../policy/start-rung.ts'
import type { Tried } from './receipt.ts'

/** Sessions remembered at once, and of one tenant; the one that was quiet longest is forgotten first. */
const MAX_SESSIONS = 50_000
const MAX_OF_TENANT = 20_000

interface Remembered {
  rung: number
  at: number
  turns: number
  cacheRead: number
  cache: CacheLedger | undefined
}

/** The answer that a turn came to; the rest is there where the route weighs what providers cache. */
export interface SessionTurn {
  served: Tried
  tried?: readonly Tried[]
  turn?: Turn
  /** The rung that the session has not gone to. */
  insteadOf?: CachingRung | undefined
}

export type Sessions = ReturnType<typeof sessions>

/** Where each session of each route was last served. Lives as long as the process: forgetting costs one cheap attempt. */
export function sessions(monotonic: () => number) {
  const byTenant = new Map<string, Map<string, Remembered>>()
  let count = 0

  function keep(tenantId: string, key: string, one: Remembered): void {
    const own = byTenant.get(tenantId) ?? new Map<string, Remembered>()
    // Last in both orders: the tenant and the session that were used last.
    byTenant.delete(tenantId)
    byTenant.set(tenantId, own)
    if (!own.delete(key)) count++
    own.set(key, one)
    if (own.size > MAX_OF_TENANT) forgetOldest(tenantId, own)
    else if (count > MAX_SESSIONS) forgetOldest(...byTenant.entries().next().value!)
  }

  function forgetOldest(tenantId: string, own: Map<string, Remembered>): void {
    own.delete(own.keys().next().value!)
    if (own.size === 0) byTenant.delete(tenantId)
    count--
  }

  return (tenantId: string, routeFp: string, sessionId: string) => {
    const key = `${routeFp} ${sessionId}`
    return {
      find(): Session | undefined {
        const one = byTenant.get(tenantId)?.get(key)
        return (
          one && {
            lastServedRung: one.rung,
            idleS: (monotonic() - one.at) / 1000,
            turn: one.turns + 1,
            cacheReadTokens: one.cacheRead,
            cache: one.cache,
          }
        )
      },
      served(turn: SessionTurn): void {
        const { rung, tokens } = turn.served
        const before = byTenant.get(tenantId)?.get(key)
        const turns = (before?.turns ?? 0) + 1
        const cacheRead = (before?.cacheRead ?? 0) + ((tokens?.cache_read ?? 0) - (before?.cacheRead ?? 0)) / turns
        const cache = cacheAfter(before?.cache, turn)
        keep(tenantId, key, { rung: rung.rung, at: monotonic(), turns, cacheRead, cache })
      },
    }
  }
}

/** What providers have cached after a turn; of a turn that they did not count nothing is known. */
function cacheAfter(before: CacheLedger | undefined, { served, tried, turn, insteadOf }: SessionTurn) {
  if (tried === undefined || turn === undefined) return undefined
  const calls = tried.flatMap(one => countedCall(one) ?? [])
  const last = countedCall(served)
  if (last === undefined || (before === undefined && calls.every(isUncached))) return undefined
  return afterTurn(before, { ...turn, calls, served: last, insteadOf })
}

const isUncached = ({ tokens }: CountedCall) =>
  tokens.cache_read === 0 && tokens.cache_write_5m === 0 && tokens.cache_write_1h === 0

function countedCall({ rung, tokens, cost, call }: Tried): CountedCall | undefined {
  if (tokens === null || cost === null || call.usageSource !== 'provider') return undefined
  return { rung, tokens, cost, startedAt: call.startedAt }
}
