import type { Log } from '../../shared/log/log.ts'
import { type Clock, deletionTime } from '../../shared/time/clock.ts'
import type { checkpointRhythm } from './checkpoint-rhythm.ts'
import type { checkpointer } from './checkpointer.ts'
import type { chainCommitter } from './commit.ts'

export interface RetentionDeps {
  /** Records older than this are dropped; 0 keeps them all. */
  days: number
  tenants: () => Promise<readonly string[]>
  prune: (tenant: string, before: Date) => Promise<number>
  /** The time of the record that was written last. */
  newestMs: () => Promise<number | undefined>
  clock: Clock
  log: Log
  /** The first pass waits until the start is over; later ones come each hour. */
  firstMs?: number
  everyMs?: number
}

const DAY_MS = 86_400_000
const FIRST_MS = 1000
const EVERY_MS = 3_600_000

/** Drops what is older than the store keeps, tenant by tenant, each time behind a signed checkpoint (docs/spec/router.md §9.4). */
export function retention(deps: RetentionDeps) {
  const { days, tenants, prune, log, firstMs = FIRST_MS, everyMs = EVERY_MS } = deps
  const nowMs = days === 0 ? undefined : deletionTime(deps)
  let closed = days === 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let passing: Promise<void> | undefined

  async function pass(): Promise<void> {
    if (nowMs === undefined) return
    const before = new Date((await nowMs()) - days * DAY_MS)
    for (const tenant of await tenants()) {
      if (closed) return
      try {
        const dropped = await prune(tenant, before)
        if (dropped > 0) log.info('records were dropped, as retention_days asks', { tenant_id: tenant, dropped })
      } catch (error) {
        // A chain that is broken, or a store that another process writes: the other tenants do not wait for it.
        log.error('old records could not be dropped; it is tried again', { tenant_id: tenant, error })
      }
    }
  }

  function schedule(ms: number): void {
    if (closed) return
    timer = setTimeout(() => {
      passing = pass()
        .catch((error: unknown) => log.error('old records could not be looked for; it is tried again', { error }))
        .finally(() => schedule(everyMs))
    }, ms)
  }
  schedule(firstMs)

  return {
    /** Resolves when nothing is dropped any more. */
    async close(): Promise<void> {
      closed = true
      clearTimeout(timer)
      await passing
    },
  }
}

interface PruneDeps {
  /** Undefined without a signing key. */
  checkpoints: ReturnType<typeof checkpointer> | undefined
  rhythm: ReturnType<typeof checkpointRhythm> | undefined
  committer: ReturnType<typeof chainCommitter>
  /** Runs a step while no commit does. */
  alone: <T>(act: () => Promise<T>) => Promise<T>
}

/** Drops the records of a tenant that are older than `before`, some at a time, each step behind a signed checkpoint. */
export async function pruneTenant(
  tenant: string,
  before: Date,
  { checkpoints, rhythm, committer, alone }: PruneDeps,
): Promise<number> {
  if (checkpoints === undefined || rhythm === undefined)
    throw new Error('Pruning needs a signing key: its checkpoint is what verify starts from.')
  if (rhythm.broken.has(tenant))
    throw new Error(`The chain of ${tenant} is broken: run \`router verify\` before pruning it.`)
  await alone(async () => ((await committer.open()) ? rhythm.one(tenant) : undefined))
  let total = 0
  for (;;) {
    const dropped = await alone(() => checkpoints.pruneStep(tenant, before.getTime()))
    if (dropped === 0) break
    total += dropped
  }
  await alone(() => checkpoints.copyOut())
  return total
}
