import type { Log } from '../../../shared/log/log.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import { type BudgetRefusal, type Caps, type Reservation, type SpentRow, savedLedger } from '../../budget/ledger.ts'
import type { Reserve, Spent } from './messages.ts'

type Tell = (stored: number, granted: number) => void

interface Holder {
  /** Undefined between its connections. */
  tell: Tell | undefined
  /** What it spent is counted up to here. */
  seq: number
  /** The last that it was granted. */
  granted: number
  open: Map<number, { reservation: Reservation; bound: number }>
  /** Reservations that it does not wait for any more, and that were not made yet. */
  dropped: Set<number>
}

export interface AccountsDeps {
  clock: Clock
  log: Log
  /** The processes that an earlier keeper of the accounts left. */
  left: readonly number[]
  store: { add(rows: readonly SpentRow[], at: Date): Promise<void> }
}

export type Accounts = ReturnType<typeof accounts>

const DAY_MS = 86_400_000
const LIMITLESS = Number.POSITIVE_INFINITY

/**
 * The one ledger of a service with several processes. Nothing is granted before every process that an earlier keeper left has said what it has
 * open, so that no cap is passed over its end. What a process has open when it ends is counted as spent: its calls may have been made.
 */
export function accounts({ clock, log, store, left }: AccountsDeps) {
  const holders = new Map<number, Holder>()
  const awaited = new Set(left)
  const ended = new Set<number>()
  let release: (() => void)[] = []
  const { ledger, save } = savedLedger({
    clock,
    log,
    store,
    taken() {
      const upTo = [...holders.values()].map(holder => ({ holder, seq: holder.seq, granted: holder.granted }))
      return () => {
        for (const { holder, seq, granted } of upTo) holder.tell?.(seq, granted)
      }
    },
  })

  function holderOf(id: number): Holder {
    const known = holders.get(id) ?? { tell: undefined, seq: 0, granted: 0, open: new Map(), dropped: new Set() }
    holders.set(id, known)
    return known
  }

  function arrived(id: number): void {
    awaited.delete(id)
    if (awaited.size > 0) return
    for (const go of release) go()
    release = []
  }

  /** Takes what was granted before, or has been spent already. */
  function certain({ spender, caps }: Pick<Reserve, 'spender' | 'caps'>, bound: number): Reservation {
    const made = ledger.open(spender, uncapped(caps)).reserve(bound)
    if (!made.ok) throw new Error('a reservation without a limit was refused')
    return made
  }

  /**
   * What the store counts of a call already. A bound of a day that is over stays with that day, and the call counts for this one, too; without a
   * cap none is stored.
   */
  function inStore({ isStored, at, caps, bound }: Reserve): number {
    const isOfToday = Math.floor(at / DAY_MS) === Math.floor(clock.now().getTime() / DAY_MS)
    return isStored && isOfToday && Object.values(caps).some(cap => cap !== null) ? bound : 0
  }

  /** What an earlier keeper granted. */
  function opened(one: Reserve): Reservation {
    const stored = inStore(one)
    const made = certain(one, one.bound - stored)
    return { ok: true, settle: cost => made.settle(cost - stored) }
  }

  function count(holder: Holder, spent: readonly Spent[]): void {
    for (const one of spent) {
      if (one.seq <= holder.seq) continue
      holder.seq = one.seq
      const open = one.id === undefined ? undefined : holder.open.get(one.id)
      if (one.id !== undefined) holder.open.delete(one.id)
      if (open) open.reservation.settle(one.cost)
      else if (one.reserved) opened(one.reserved).settle(one.cost)
      else if (one.cost > 0) certain(one, 0).settle(one.cost)
      else if (one.id !== undefined && awaited.size > 0) holder.dropped.add(one.id)
    }
  }

  return {
    load: ledger.load,
    /** A process says what it has open and what it spent; what it does not name is not open. */
    connected(id: number, open: readonly Reserve[], spent: readonly Spent[], tell: Tell): void {
      const holder = holderOf(id)
      holder.tell = tell
      count(holder, spent)
      if (ended.has(id)) {
        for (const one of open) opened(one).settle(one.bound)
        return
      }
      const named = new Set(open.map(one => one.id))
      for (const [number, { reservation }] of holder.open) {
        if (named.has(number)) continue
        reservation.settle(0)
        holder.open.delete(number)
      }
      for (const one of open) {
        if (holder.open.has(one.id)) continue
        holder.open.set(one.id, { reservation: opened(one), bound: one.bound })
        holder.granted = Math.max(holder.granted, one.id)
      }
      arrived(id)
    },
    async reserve(id: number, asked: readonly Reserve[]): Promise<(true | BudgetRefusal)[]> {
      if (awaited.size > 0) await new Promise<void>(resolve => release.push(resolve))
      // What it asked for on its way out would never be given back.
      if (ended.has(id)) return []
      const holder = holderOf(id)
      return asked.map(({ id: number, spender, caps, bound }) => {
        if (holder.open.has(number) || holder.dropped.delete(number)) return true
        const made = ledger.open(spender, caps).reserve(bound)
        if (!made.ok) return made
        holder.open.set(number, { reservation: made, bound })
        holder.granted = Math.max(holder.granted, number)
        return true
      })
    },
    spent(id: number, spent: readonly Spent[]): void {
      // The bounds of its calls are counted.
      count(holderOf(id), ended.has(id) ? spent.filter(one => one.id === undefined) : spent)
    },
    /** The process ended. What it said last may still be on its way. */
    gone(id: number): void {
      ended.add(id)
      for (const { reservation, bound } of holders.get(id)?.open.values() ?? []) reservation.settle(bound)
      holders.delete(id)
      arrived(id)
    },
    save,
  }
}

/** The same accounts, without a limit. */
function uncapped(caps: Caps): Caps {
  const limit = (cap: number | null) => (cap === null ? null : LIMITLESS)
  return {
    request: null,
    session: limit(caps.session),
    day: limit(caps.day),
    tenant_day: limit(caps.tenant_day),
    route_day: limit(caps.route_day),
    route_tenant_day: limit(caps.route_tenant_day),
  }
}
