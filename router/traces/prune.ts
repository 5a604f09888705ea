import type { checkpointRhythm } from './checkpoint-rhythm.ts'
import type { checkpointer } from './checkpointer.ts'
import type { chainCommitter } from './commit.ts'

export interface PruneDeps {
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
