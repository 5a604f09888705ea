import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { blobRef } from '../../shared/wire/runtime/journal.ts'
import type { blobs } from '../schema/tables.ts'
import type { Records } from '../vault/records.ts'
import type { History } from './journal/history.ts'

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Reads outputs that stand beside the journal of a run, by their digests. */
export function blobReader(db: Db, records: Records, runId: string) {
  return async (digest: string): Promise<unknown> => {
    const found = await db.execute({
      sql: 'select content, sealed from blobs where run_id = ? and sha256 = ?',
      args: [runId, digest],
    })
    const [row] = rowsOf<Pick<RowOf<typeof blobs>, 'content' | 'sealed'>>(found)
    if (row === undefined) throw new Error(`run ${runId} lacks the recorded output ${digest}`)
    const plain = records.openBytes(new Uint8Array(row.content), row.sealed, `blob ${digest}`)
    return readJson(decoder.decode(plain))
  }
}

/** Lets steps read their outputs that stand beside the journal. */
export function withBlobs({ steps }: History, read: ReturnType<typeof blobReader>): void {
  for (const [stepId, state] of steps) {
    const ref = state.is === 'completed' ? blobRef.safeParse(state.output) : undefined
    if (!ref?.success || state.is !== 'completed') continue
    const { sha256 } = ref.data.$blob
    steps.set(stepId, { ...state, load: () => read(sha256) })
  }
}
