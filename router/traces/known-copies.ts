import type { Log } from '../../shared/log/log.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Checkpoint } from '../../shared/wire/router/checkpoint.ts'
import { checkpointDigest } from './checkpoint.ts'
import { toCheckpoint } from './export-line.ts'

/** Where copies of checkpoints go: a file beside the store, a place that an intruder cannot reach. */
export interface LineSink {
  name: string
  append(line: string): Promise<void>
  /** The newest of what was appended, as text that may begin within a line. */
  tail?(): Promise<string>
}

interface KnownCopiesDeps {
  db: Db
  log: Log
  sha256: Sha256
  sinks: readonly LineSink[]
}

export type KnownCopies = ReturnType<typeof knownCopies>

/**
 * Whether the newest copy of a tenant's checkpoint is of this store. It is not where the store was cut, lost or restored from an older backup: what
 * is signed then contradicts what was signed before, and the holder of the copy can show it.
 */
export function knownCopies({ db, log, sha256, sinks }: KnownCopiesDeps) {
  const compared = new Set<string>()
  let read: Promise<{ name: string; last: Map<string, Checkpoint> }[]> | undefined

  /** The newest copies of a tenant's checkpoint that are of another store. */
  async function foreign(tenant: string): Promise<{ file: string; seq: number }[]> {
    read ??= Promise.all(sinks.map(async ({ name, tail }) => ({ name, last: newest((await tail?.()) ?? '') })))
    const found: { file: string; seq: number }[] = []
    for (const { name, last } of await read) {
      const copy = last.get(tenant)
      if (copy === undefined) continue
      const { rows } = await db.execute({
        sql: 'select 1 from checkpoints where tenant_id = ? and digest = ? limit 1',
        args: [tenant, checkpointDigest(copy, sha256)],
      })
      if (rows.length === 0) found.push({ file: name, seq: copy.seq })
    }
    return found
  }

  return {
    foreign,
    /** Once for each tenant, before this process makes its first copy. */
    async compare(tenant: string): Promise<void> {
      if (compared.has(tenant)) return
      compared.add(tenant)
      for (const { file, seq } of await foreign(tenant)) {
        log.error(
          'the newest copy of a checkpoint is not of this store, which was cut, lost or restored from an older backup: what is signed from here on contradicts that copy. Keep both',
          { file, tenant_id: tenant, seq },
        )
      }
    },
  }
}

/** The last checkpoint of each tenant; what is no checkpoint says nothing. */
function newest(tail: string): Map<string, Checkpoint> {
  const last = new Map<string, Checkpoint>()
  for (const line of tail.split('\n')) {
    try {
      const found = toCheckpoint(line)
      last.set(found.tenant_id, found)
    } catch {
      // The first line of a tail is cut.
    }
  }
  return last
}
