import { readJson } from '../../shared/json/read-json.ts'
import type { Db } from '../../shared/sql/db.ts'
import { blobRef } from '../../shared/wire/runtime/journal.ts'
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
    const { rows } = await db.execute({
      sql: 'select content, sealed from blobs where run_id = ? and sha256 = ?',
      args: [runId, digest],
    })
    const content = rows[0]?.[0]
    if (!(content instanceof ArrayBuffer)) throw new Error(`run ${runId} lacks the recorded output ${digest}`)
    const sealed = rows[0]?.[1] ?? null
    const plain = records.openBytes(new Uint8Array(content), sealed === null ? null : String(sealed), `blob ${digest}`)
    steps.set(stepId, { ...state, output: readJson(decoder.decode(plain)) as unknown })
  }
}
