import type { Log } from '../../shared/log/log.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import type { Clock } from '../../shared/time/clock.ts'

export const budgetScopes = ['request', 'session', 'day', 'tenant_day', 'route_day', 'route_tenant_day'] as const
export type BudgetScope = (typeof budgetScopes)[number]

/** The smallest cap that applies in each scope; null where there is none. */
export type Caps = Readonly<Record<BudgetScope, NanoUsd | null>>

export interface Spender {
  tenantId: string
  sessionId: string
  /** Fingerprint of the route that the request is on. */
  route: string
}

export interface BudgetRefusal {
  ok: false
  scope: BudgetScope
  limit: NanoUsd
  used: NanoUsd
  /** Why nothing could be reserved, where no cap was in the way. */
  away?: string
}

export interface Reservation {
  ok: true
  /** Puts the real cost in the place of the bound. Once; later calls do nothing. */
  settle(cost: NanoUsd): void
}

/** What was spent under one key, to be kept or to be read back. */
export interface SpentRow {
  key: string
  spent: NanoUsd
}

/** What was quiet for so long can matter no more, here and in the store. */
export const FORGET_MS = 48 * 3_600_000
/**
 * Sessions remembered at once. Beyond that the tenant with the most sessions loses the one that was idle longest, which begins at zero. Clients choose
 * the names of sessions, so the totals of days, tenants and routes are kept apart and are not lost to them.
 */
const MAX_SESSIONS = 200_000

/** Asked for again within so long, a total keeps its place: what is forgotten was quiet for much longer. */
const SAME_MS = 1000

interface Total {
  spent: NanoUsd
  reserved: NanoUsd
  /** When it was last asked for, in milliseconds, to within a second. */
  at: number
}

/** What a call asks before it is made; where another process keeps the accounts, its answer is waited for. */
export interface Budgets {
  open(
    spender: Spender,
    caps: Caps,
  ): { reserve(bound: NanoUsd): Reservation | BudgetRefusal | Promise<Reservation | BudgetRefusal> }
}

export interface LedgerOptions {
  /** Called when there is something to be stored. */
  changed?: () => void
  monotonic?: () => number
}

/**
 * What each request, session, day and tenant has spent and reserved. A call reserves its upper bound before it is made,
 * so that calls in parallel cannot overrun a cap together. Days are UTC days. What an open call has reserved under a
 * cap is stored as spent until the call ends, and so counts if this process is killed.
 */
export function budgetLedger(
  now: () => Date,
  { changed = () => undefined, monotonic = () => now().getTime() }: LedgerOptions = {},
) {
  const totals = rememberedTotals()
  let unsaved = new Map<string, NanoUsd>()
  const daysAt = dayKeys()

  function store(keys: readonly string[], change: NanoUsd): void {
    if (change === 0) return
    for (const key of keys) unsaved.set(key, (unsaved.get(key) ?? 0) + change)
    changed()
  }

  return {
    /** The account of one request; its own cap covers all of its calls. */
    open({ tenantId, sessionId, route }: Spender, caps: Caps) {
      const own = { spent: 0, reserved: 0 }
      const session = `session/${tenantId}/${sessionId}`
      return {
        reserve(bound: NanoUsd): Reservation | BudgetRefusal {
          const at = monotonic()
          const { date, day, tenantDay } = daysAt(now().getTime(), tenantId)
          // What a route spends is counted on its own only where it has a cap of its own.
          const ofRoute: [BudgetScope, string][] = []
          if (caps.route_day !== null) ofRoute.push(['route_day', `route/${route}/${date}`])
          if (caps.route_tenant_day !== null) {
            ofRoute.push(['route_tenant_day', `route-tenant/${route}/${tenantId}/${date}`])
          }
          const accounts: [BudgetScope, { spent: NanoUsd; reserved: NanoUsd }][] = [
            ['request', own],
            ['session', totals.of(session, at)],
            ['day', totals.of(day, at)],
            ['tenant_day', totals.of(tenantDay, at)],
            ...ofRoute.map(([scope, key]): (typeof accounts)[number] => [scope, totals.of(key, at)]),
          ]
          let isCapped = false
          for (const [scope, { spent, reserved }] of accounts) {
            const limit = caps[scope]
            isCapped ||= limit !== null
            const used = spent + reserved
            if (limit !== null && used + bound > limit) return { ok: false, scope, limit, used }
          }
          for (const [, account] of accounts) account.reserved += bound
          const kept = [session, day, tenantDay, ...ofRoute.map(([, key]) => key)]
          // Without a cap a caller sets the bound as high as it likes, and the sum of two may be no number that a store takes.
          const stored = isCapped ? bound : 0
          store(kept, stored)
          let open = true
          return {
            ok: true,
            settle(cost) {
              if (!open) return
              open = false
              for (const [, account] of accounts) {
                account.reserved -= bound
                account.spent += cost
              }
              store(kept, cost - stored)
            },
          }
        },
      }
    },

    /** How many sessions and days are remembered. */
    get size() {
      return totals.size
    },

    /** What earlier processes have spent. */
    load(rows: Iterable<SpentRow>): void {
      for (const { key, spent } of rows) totals.of(key, monotonic()).spent += spent
    },

    /** What was spent and reserved since the last call, to be added to what is stored. Less than nothing where a call cost less than its bound. */
    takeUnsaved(): SpentRow[] {
      const rows = [...unsaved].map(([key, spent]) => ({ key, spent }))
      unsaved = new Map()
      return rows.filter(({ spent }) => spent !== 0)
    },

    /** Gives back what could not be stored. */
    returnUnsaved(rows: readonly SpentRow[]): void {
      for (const { key, spent } of rows) unsaved.set(key, (unsaved.get(key) ?? 0) + spent)
    },
  }
}

/** Totals by key, and which of them are forgotten when there are too many. */
function rememberedTotals() {
  /** Of each tenant, in the order in which they were last asked for, to within a second. */
  const sessions = new Map<string, Map<string, Total>>()
  const lasting = new Map<string, Total>()
  let count = 0

  function of(key: string, at: number): Total {
    const isSession = key.startsWith(SESSION)
    const totals = isSession ? sessionsOf(key.slice(SESSION.length, key.indexOf('/', SESSION.length))) : lasting
    const known = totals.get(key)
    if (known && at - known.at < SAME_MS) return known
    const one = known ?? { spent: 0, reserved: 0, at }
    if (known) totals.delete(key)
    else {
      forgetQuiet(lasting, at)
      if (isSession) {
        count -= forgetQuiet(totals, at)
        if (count >= MAX_SESSIONS) count -= forgetFirst(largest())
        count++
      }
    }
    one.at = at
    totals.set(key, one)
    return one
  }

  function sessionsOf(tenantId: string): Map<string, Total> {
    const known = sessions.get(tenantId)
    if (known) return known
    const own = new Map<string, Total>()
    sessions.set(tenantId, own)
    return own
  }

  function largest(): Map<string, Total> {
    let most = new Map<string, Total>()
    for (const own of sessions.values()) if (own.size > most.size) most = own
    return most
  }

  /** Nothing is forgotten while a call of its is on its way. */
  function forgetQuiet(totals: Map<string, Total>, at: number): number {
    let forgotten = 0
    for (const [key, quiet] of totals) {
      if (at - quiet.at < FORGET_MS) break
      if (quiet.reserved === 0 && totals.delete(key)) forgotten++
    }
    return forgotten
  }

  function forgetFirst(totals: Map<string, Total>): number {
    for (const [key, { reserved }] of totals) if (reserved === 0) return totals.delete(key) ? 1 : 0
    return 0
  }

  return {
    of,
    get size() {
      return count + lasting.size
    },
  }
}

const SESSION = 'session/'

const DAY_MS = 86_400_000
/** Tenants come from a config, which may change during a day. */
const MAX_TENANTS = 1000

/** The keys of a UTC day, each made once: a date in words costs more than all that is done with it. */
function dayKeys(): (at: number, tenantId: string) => { date: string; day: string; tenantDay: string } {
  let of = Number.NaN
  let date = ''
  let day = ''
  const tenants = new Map<string, string>()
  return (at, tenantId) => {
    const today = Math.floor(at / DAY_MS)
    if (today !== of || tenants.size >= MAX_TENANTS) {
      of = today
      date = new Date(at).toISOString().slice(0, 10)
      day = `day/${date}`
      tenants.clear()
    }
    let tenantDay = tenants.get(tenantId)
    if (tenantDay === undefined) {
      tenantDay = `tenant/${tenantId}/${date}`
      tenants.set(tenantId, tenantDay)
    }
    return { date, day, tenantDay }
  }
}

const SAVE_MS = 1000

interface SavedLedgerDeps {
  clock: Clock
  log: Pick<Log, 'error'>
  /** Undefined: what was spent lives as long as this process. */
  store: { add(rows: readonly SpentRow[], at: Date): Promise<void> } | undefined
  /** What it returns is called once what was counted until then is in the store. */
  taken?: () => () => void
}

/** A ledger whose spending is stored within a second. */
export function savedLedger({ clock, log, store, taken }: SavedLedgerDeps) {
  let saving: ReturnType<typeof setTimeout> | undefined
  const ledger = budgetLedger(clock.now, { changed: saveSoon, monotonic: clock.monotonic })

  function saveSoon(): void {
    if (store) saving ??= setTimeout(() => void save(), SAVE_MS)
    else ledger.takeUnsaved()
  }

  async function save(): Promise<void> {
    clearTimeout(saving)
    saving = undefined
    const rows = ledger.takeUnsaved()
    const stored = taken?.()
    try {
      await store?.add(rows, clock.now())
      stored?.()
    } catch (error) {
      ledger.returnUnsaved(rows)
      saveSoon()
      log.error('spent budgets could not be stored; it is tried again', { error })
    }
  }

  return {
    ledger,
    save,
    /** Resolves when nothing waits to be stored. */
    async settled(): Promise<void> {
      if (saving !== undefined) await save()
    },
    async close(): Promise<void> {
      await save()
      clearTimeout(saving)
    },
  }
}
