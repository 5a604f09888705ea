import type { Session } from '../policy/start-rung.ts'

/** Sessions remembered at once; the one that was quiet longest is forgotten first. */
const MAX_SESSIONS = 50_000

interface Remembered {
  rung: number
  at: number
  turns: number
  cacheRead: number
}

export type Sessions = ReturnType<typeof sessions>

/** Where each session of each route was last served. Lives as long as the process: forgetting costs one cheap attempt. */
export function sessions(monotonic: () => number) {
  const known = new Map<string, Remembered>()
  return (tenantId: string, routeFp: string, sessionId: string) => {
    const key = `${tenantId} ${routeFp} ${sessionId}`
    return {
      find(): Session | undefined {
        const one = known.get(key)
        return (
          one && {
            lastServedRung: one.rung,
            idleS: (monotonic() - one.at) / 1000,
            turn: one.turns + 1,
            cacheReadTokens: one.cacheRead,
          }
        )
      },
      served(rung: number, cacheReadTokens = 0): void {
        const before = known.get(key)
        const turns = (before?.turns ?? 0) + 1
        const cacheRead = (before?.cacheRead ?? 0) + (cacheReadTokens - (before?.cacheRead ?? 0)) / turns
        known.delete(key)
        known.set(key, { rung, at: monotonic(), turns, cacheRead })
        if (known.size > MAX_SESSIONS) known.delete(known.keys().next().value!)
      },
    }
  }
}
