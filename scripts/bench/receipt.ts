import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ChainHead, genesis, type SealedEvent, sealEvent } from '../../runtime/execution/journal/event.ts'
import { verifyOffline } from '../../runtime/receipts/verify-offline.ts'
import { runStore } from '../../runtime/runs/store.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { openDataKeys } from '../../runtime/vault/data-keys.ts'
import { masterKey } from '../../runtime/vault/master-key.ts'
import { sealedRecords } from '../../runtime/vault/records.ts'
import { vault } from '../../runtime/vault/vault.ts'
import { nativeCipher } from '../../shared/host/native-crypto.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import type { Agent } from '../../shared/wire/runtime/agent.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt, ReceiptKeys, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import type { Bench, Figure } from './harness.ts'

const EVENTS = 10_000
const ROOT = `wb_live_${'b'.repeat(43)}`

export const receiptBench: Bench = {
  title: 'Verification of a receipt',
  about: `A receipt and the journal of ${EVENTS} events that it speaks of, about 450 bytes each. Offline: the signature and every hash of an export. Live: POST /v1/runs/receipts/verify, which reads the stored journal, opens each sealed event and computes every hash again.`,
  unit: 'events/s',
  rounds: 7,
  expectations: [
    { says: 'milliseconds offline', value: ({ variants }) => (EVENTS * 1000) / variants[0]!.median, atMost: 150 },
    { says: 'milliseconds live', value: ({ variants }) => (EVENTS * 1000) / variants[1]!.median, atMost: 150 },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-'))
    const db = await openDb(join(folder, 'runtime.db'))
    const bytes = new Uint8Array(32).fill(1)
    const options = { cipher: nativeCipher, sha256: nativeSha256, bootstrapKey: ROOT, timers: false }
    const runtime = createRuntime({ db, masterKey: bytes, ...options })
    await runtime.ready()
    async function call<T>(method: string, path: string, body?: object): Promise<T> {
      const headers = { authorization: `Bearer ${ROOT}`, 'content-type': 'application/json' }
      const answer = await runtime.fetch(
        new Request(`http://local${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) }),
      )
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
      return (await answer.json()) as T
    }
    const agent = await call<Agent>('POST', '/v1/agents', { name: 'long', manifest: {} })
    const keys = await openDataKeys(db, vault(await masterKey(bytes)), Date.now())
    const runId = await longRun(agent)
    const receipt = await call<Receipt>('GET', `/v1/runs/${runId}/receipt`)
    const journal = await call<JournalExport>('GET', `/v1/runs/${runId}/journal`)
    const { keyFingerprint: fingerprint } = await call<ReceiptKeys>('GET', '/.well-known/platform-receipts')

    /** Written as a run leaves it; its receipt is made when it is first asked for. */
    async function longRun({ id: agentId, currentVersionId: versionId }: Agent): Promise<string> {
      const runs = runStore(db, sealedRecords(nativeCipher, keys))
      const id = uuidv7()
      let head: ChainHead = genesis(id, nativeSha256)
      const events: SealedEvent[] = []
      for (let at = 1; at <= EVENTS; at++) {
        const stepId = `model-${Math.ceil(at / 2)}`
        const meta = { provider: 'demo', model: 'demo/echo', durationMs: 12, tokensIn: 0, tokensOut: 0, costUsd: 0 }
        const event = sealEvent(
          head,
          id,
          at % 2 === 1
            ? { kind: 'step_started', stepId, attempt: 1, payload: {}, meta: { stepKind: 'model', name: 'demo/echo' } }
            : { kind: 'step_completed', stepId, attempt: 1, payload: { output: { text: 'x'.repeat(400) } }, meta },
          new Date(),
          nativeSha256,
        )
        head = { seq: event.entry.seq, hash: event.entry.hash }
        events.push(event)
      }
      await runs.create({
        id,
        tenantId: 'default',
        agentName: 'long',
        agentId,
        versionId,
        createdMs: Date.now(),
        input: '{}',
        labels: '{}',
        trigger: { kind: 'api' },
        isolation: 'shared',
        day: '2026-01-02',
        events,
      })
      await db.execute({
        sql: `update runs set status = 'succeeded', due_ms = null, node_id = 'local', finished_ms = created_ms,
          event_count = ?, head = ? where id = ?`,
        args: [EVENTS, head.hash, id],
      })
      await db.execute({ sql: `update run_data set output = '{}' where run_id = ?`, args: [id] })
      await runs.close()
      return id
    }

    return {
      variants: [
        {
          name: 'offline',
          async round() {
            const started = performance.now()
            const result = await verifyOffline({ receipt, journal, fingerprint }, nativeSha256)
            if (!result.valid) throw new Error(result.reason)
            return (EVENTS * 1000) / (performance.now() - started)
          },
        },
        {
          name: 'live',
          async round() {
            const started = performance.now()
            const result = await call<VerifyResult>('POST', '/v1/runs/receipts/verify', receipt)
            if (!result.valid || result.checks.journal !== 'ok') throw new Error(JSON.stringify(result))
            return (EVENTS * 1000) / (performance.now() - started)
          },
        },
      ],
      figures: async (): Promise<Figure[]> => [
        { name: 'journal as it is exported', value: JSON.stringify(journal).length / 1024 ** 2, unit: 'MiB' },
      ],
      async close() {
        await runtime.close()
        db.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
