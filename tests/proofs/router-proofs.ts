import { auditReads } from '../../router/audit/reads.ts'
import { routerProgram } from '../../router/cli/commands.ts'
import { calibrationTable } from '../../router/config/learning-tables.ts'
import { resolveCalibration } from '../../router/config/resolve-settings.ts'
import { keepFeedback } from '../../router/feedback/store-feedback.ts'
import { storeFolder, testSigner, testWriter } from '../../router/host/testing/store-folder.ts'
import { publishedKeys, publishKey } from '../../router/traces/keys.ts'
import { sampleTrace } from '../../router/traces/testing/records.ts'
import { typed } from '../../shared/cli/testing/typed.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { silentLog } from '../../shared/log/log.ts'
import { signer } from '../../shared/sign/ed25519.ts'
import { systemClock } from '../../shared/time/clock.ts'
import type { RouterKeys } from '../../shared/wire/router/checkpoint.ts'

/** What a holder has of a router: an export, and the keys that were kept. */
export interface ExportProof {
  text: string
  keys: RouterKeys
}

export const EXPORT_KINDS = ['plain', 'feedback', 'pruned', 'rotated'] as const
export type ExportKind = (typeof EXPORT_KINDS)[number]

export type LineKind = 'record' | 'feedback' | 'checkpoint' | 'keys'

/** What a line of an export is, by a member that only this kind has. */
export const kindOfLine = (line: string): LineKind =>
  line.includes('"attempts":')
    ? 'record'
    : line.includes('"prev_checkpoint":')
      ? 'checkpoint'
      : line.includes('"heads_url":')
        ? 'keys'
        : 'feedback'

const DAY = 86_400_000
const ADAPTED = [{ path: 'thinking', from: 'adaptive', to: null, why: 'unsupported' as const }]
const settings = () => resolveCalibration(calibrationTable.parse({}))

/** Exports of every kind, from stores that the router's own writers filled. */
export async function routerProofs(): Promise<Record<ExportKind, ExportProof>> {
  const folder = await storeFolder()
  const next = await signer(new Uint8Array(32).fill(8))
  const made: Partial<Record<ExportKind, ExportProof>> = {}
  try {
    for (const kind of EXPORT_KINDS) {
      const db = await folder.open(`${kind}.db`)
      for (const key of kind === 'rotated' ? [testSigner, next] : [testSigner]) {
        await publishKey(db, key, new Date())
        const writer = testWriter(db, { signer: key, limits: { checkpoint_records: 3 } })
        writer.start()
        for (let at = 0; at < 10; at++) {
          const trace = sampleTrace({
            tenant: at < 8 ? 'a' : 'b',
            at: Date.now() - (10 - at) * DAY,
            session: at === 4 ? 'é😀\n' : 's',
          })
          writer.enqueue(
            at === 5 ? { ...trace, attempts: trace.attempts.map(one => ({ ...one, adapted: ADAPTED })) } : trace,
          )
          if (at % 4 === 3) await writer.flush()
        }
        await writer.flush()
        if (kind === 'feedback' || kind === 'pruned') {
          const reads = auditReads(db)
          const feedback = await keepFeedback({
            db,
            clock: systemClock,
            log: silentLog(),
            sha256: nativeSha256,
            settings,
            find: async (id, tenant) => (await reads.find(id, tenant))?.trace,
          })
          const { rows } = await db.execute("select trace_id from traces where tenant_id = 'a' order by seq")
          for (const row of rows.slice(-4)) {
            await feedback.submit({ request_id: String(row.trace_id), outcome: 'correct', score: 0.25 }, 'a')
          }
          await feedback.close()
        }
        if (kind === 'pruned') await writer.prune('a', new Date(Date.now() - 7 * DAY))
        await writer.close()
      }
      made[kind] = { text: await exported(folder.path(`${kind}.db`)), keys: await publishedKeys(db) }
    }
    return made as Record<ExportKind, ExportProof>
  } finally {
    await folder.remove()
  }
}

async function exported(db: string): Promise<string> {
  const { code, out } = await typed(routerProgram, ['export', '--feedback', '--checkpoints', '--db', db])
  if (code !== 0) throw new Error(`router export ended with ${code}: ${out}`)
  return out
}
