import type { Log } from '../../shared/log/log.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { checkTail, type TailBreak } from './boot-check.ts'
import { lastReports } from './chains.ts'
import type { checkpointer } from './checkpointer.ts'
import type { chainCommitter } from './commit.ts'

export interface RhythmOptions {
  db: Db
  log: Log
  sha256: Sha256
  committer: ReturnType<typeof chainCommitter>
  checkpoints: ReturnType<typeof checkpointer>
  /** A chain is signed after so many records, and so many seconds after the first of fewer. */
  records: number
  seconds: number
  /** Asks for `all` to be called when no commit runs. */
  due: () => void
}

/** When checkpoints are made, and of which chains: one that was broken when this process came gets none. */
export function checkpointRhythm(options: RhythmOptions) {
  const { db, log, sha256, committer, checkpoints, records, seconds, due } = options
  const broken = new Map<string, TailBreak>()
  const checked = new Set<string>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false

  async function one(tenant: string, reports?: number) {
    if (broken.has(tenant)) return
    if (await checkpoints.checkpoint(tenant, reports)) await checkpoints.copyOut()
  }

  function byTheClock() {
    timer = undefined
    due()
  }

  return {
    broken,
    one,
    async all() {
      const reports = await lastReports(db)
      for (const tenant of [...committer.chains().keys()]) await one(tenant, reports.get(tenant))
    },
    /** After a commit to these chains. */
    async after(tenants: ReadonlySet<string>) {
      for (const tenant of tenants) {
        const { head, checkpointed } = committer.chainOf(tenant)
        if ((head?.seq ?? -1) - checkpointed >= records) await one(tenant)
        else if (!stopped) timer ??= setTimeout(byTheClock, seconds * 1000)
      }
    },
    /** Once for each chain that was there when this process came. */
    async checkNew() {
      for (const [tenant, { head }] of committer.chains()) {
        if (checked.has(tenant)) continue
        const fault = head === undefined ? undefined : await checkTail(db, tenant, sha256)
        checked.add(tenant)
        if (fault === undefined) continue
        broken.set(tenant, fault)
        log.error('a chain in the store is broken: it gets no more checkpoints; run `router verify`', { ...fault })
      }
    },
    /** No more checkpoints by the clock. */
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
