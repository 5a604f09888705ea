import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import { blobRef } from '../../shared/wire/runtime/journal.ts'
import type { blobs } from '../schema/tables.ts'
import type { Records } from '../vault/records.ts'
import type { History } from './journal/history.ts'

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Puts the outputs that stand beside the journal back in their steps, whole. */
export async function readBlobs(db: Db, records: Records, runId: string, { steps }: History): Promise<void> {
  const wanted = [...steps].flatMap(([stepId, state]) => {
    const ref = state.is === 'completed' ? blobRef.safeParse(state.output) : undefined
    return ref?.success && state.is === 'completed' ? [{ stepId, state, digest: ref.data.$blob.sha256 }] : []
  })
  for (const { stepId, state, digest } of wanted) {
    const found = await db.execute({
      sql: 'select content, sealed from blobs where run_id = ? and sha256 = ?',
      args: [runId, digest],
    })
    const [row] = rowsOf<Pick<RowOf<typeof blobs>, 'content' | 'sealed'>>(found)
    if (row === undefined) throw new Error(`run ${runId} lacks the recorded output ${digest}`)
    const plain = records.openBytes(new Uint8Array(row.content), row.sealed, `blob ${digest}`)
    steps.set(stepId, { ...state, output: readJson(decoder.decode(plain)) as unknown })
  }
}
