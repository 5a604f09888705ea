import type { Log } from '../../shared/log/log.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { Committed } from './commit.ts'
import { readSpill, type Spill, type SpillPart } from './spill.ts'

export interface SpillDrainOptions {
  spill: Spill
  log: Log
  /** Looks every record up before it is sealed: a line may be in the store already. */
  commit: (records: readonly UnsealedTrace[]) => Promise<Committed | undefined>
}

const NOTHING = { written: 0, tenants: new Set<string>(), late: [] }

/** Brings spilled records into the store, some at a time, so that new ones do not wait for all of them. */
export function spillDrain({ spill, log, commit }: SpillDrainOptions) {
  let parts: SpillPart[] = []
  let open: { part: SpillPart; records: UnsealedTrace[]; at: number } | undefined
  let appended = false

  async function nextPart() {
    if (parts.length === 0 && appended) {
      appended = false
      try {
        parts = await spill.parts()
      } catch (error) {
        appended = true
        throw error
      }
    }
    const part = parts[0]
    if (part === undefined) return
    const { records, torn } = readSpill(await part.read())
    if (torn > 0) log.warn('the spill file holds lines that a dying process did not finish; they are skipped', { torn })
    parts.shift()
    open = { part, records, at: 0 }
  }

  return {
    pending: () => open !== undefined || parts.length > 0 || appended,
    /** Something was appended, or may have been left by an earlier process. */
    more() {
      appended = true
    },
    /** Commits up to `most` records. Nothing when another process holds the lease. */
    async step(most: number): Promise<Pick<Committed, 'written' | 'tenants' | 'late'> | undefined> {
      if (open === undefined) await nextPart()
      if (open === undefined) return NOTHING
      const batch = open.records.slice(open.at, open.at + most)
      const done = batch.length === 0 ? NOTHING : await commit(batch)
      if (done === undefined) return undefined
      open.at += batch.length
      if (open.at >= open.records.length) {
        await open.part.remove()
        open = undefined
      }
      return done
    },
  }
}
