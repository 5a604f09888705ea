import type { NanoUsd } from '../../shared/money/money.ts'

export type BudgetScope = 'request' | 'session' | 'day' | 'tenant_day'

/** The smallest cap that applies in each scope; null where there is none. */
export type Caps = Readonly<Record<BudgetScope, NanoUsd | null>>

export interface Spender {
  tenantId: string
  sessionId: string
}

export interface BudgetRefusal {
  ok: false
  scope: BudgetScope
  limit: NanoUsd
  used: NanoUsd
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

export type BudgetLedger = ReturnType<typeof budgetLedger>

/**
 * What each request, session, day and tenant has spent and reserved. A call reserves its upper bound before it is made,
 * so that calls in parallel cannot overrun a cap together. Days are UTC days. `spent` is called when there is something
 * to be stored.
 */
export function budgetLedger(now: () => Date, spent: () => void = () => undefined) {
  const totals = new Map<string, { spent: NanoUsd; reserved: NanoUsd }>()
  let unsaved = new Map<string, NanoUsd>()

  const total = (key: string) => {
    const known = totals.get(key)
    if (known) return known
    const made = { spent: 0, reserved: 0 }
    totals.set(key, made)
    return made
  }

  function keys({ tenantId, sessionId }: Spender): Record<Exclude<BudgetScope, 'request'>, string> {
    const day = now().toISOString().slice(0, 10)
    return { session: `session/${tenantId}/${sessionId}`, day: `day/${day}`, tenant_day: `tenant/${tenantId}/${day}` }
  }

  return {
    /** The account of one request; its own cap covers all of its calls. */
    open(spender: Spender, caps: Caps) {
      const own = { spent: 0, reserved: 0 }
      return {
        reserve(bound: NanoUsd): Reservation | BudgetRefusal {
          const named = keys(spender)
          const accounts: [BudgetScope, { spent: NanoUsd; reserved: NanoUsd }][] = [
            ['request', own],
            ['session', total(named.session)],
            ['day', total(named.day)],
            ['tenant_day', total(named.tenant_day)],
          ]
          for (const [scope, { spent, reserved }] of accounts) {
            const limit = caps[scope]
            const used = spent + reserved
            if (limit !== null && used + bound > limit) return { ok: false, scope, limit, used }
          }
          for (const [, account] of accounts) account.reserved += bound
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
              if (cost === 0) return
              for (const key of Object.values(named)) unsaved.set(key, (unsaved.get(key) ?? 0) + cost)
              spent()
            },
          }
        },
      }
    },

    /** What earlier processes have spent. */
    load(rows: Iterable<SpentRow>): void {
      for (const { key, spent } of rows) total(key).spent += spent
    },

    /** What was spent since the last call, to be added to what is stored. */
    takeUnsaved(): SpentRow[] {
      const rows = [...unsaved].map(([key, spent]) => ({ key, spent }))
      unsaved = new Map()
      return rows
    },

    /** Gives back what could not be stored. */
    returnUnsaved(rows: readonly SpentRow[]): void {
      for (const { key, spent } of rows) unsaved.set(key, (unsaved.get(key) ?? 0) + spent)
    },
  }
}
