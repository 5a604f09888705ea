import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { insertJson } from '../../shared/sql/insert-json.ts'

export const columnNames = ['run_id', 'seq', 'kind', 'step_id', 'attempt', 'at', 'payload', 'meta', 'hash'] as const

/** The shape of a journal: one row is about 400 bytes. */
export function journalTable(table: string): string {
  return `create table ${table} (run_id text not null, seq integer not null, kind text not null, step_id text not null, attempt integer not null,
    at text not null, payload text not null, meta text not null, hash text not null, primary key (run_id, seq))`
}

export function journalInsert(table: string) {
  return insertJson(table, {
    run_id: 'text',
    seq: 'integer',
    kind: 'text',
    step_id: 'text',
    attempt: 'integer',
    at: 'text',
    payload: 'text',
    meta: 'text',
    hash: 'text',
  })
}

/** Time-ordered like the real ones (UUIDv7), so that runs of the same moment are neighbours in the index. */
export function newRunId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  const rest = randomBytes(10).toString('hex')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(0, 3)}-8${rest.slice(3, 6)}-${rest.slice(6, 18)}`
}

export type JournalRow = ReturnType<typeof journalRow>

export function journalRow(runId: string, seq: number) {
  const step = `tool-${seq >> 1}-1`
  return {
    run_id: runId,
    seq,
    kind: seq % 2 === 1 ? 'step_started' : 'step_completed',
    step_id: step,
    attempt: 1,
    at: '2026-01-02T03:04:05.678Z',
    payload: `{"output":{"ok":true,"text":"${'é and plain words '.repeat(6)}","turn":${seq}}}`,
    meta: `{"idempotencyKey":"${runId}:${step}:1","name":"search","nodeId":"embedded","stepKind":"tool"}`,
    hash: 'c2c79dc89354c7cc79fb6dc532ca58d56e04c6bc8b209e6c0b983889a817b038',
  }
}

/** A database file on the project's disk: the system's temporary folder may be memory, where a sync costs nothing. */
export async function benchDb(synchronous: 'full' | 'normal'): Promise<{ db: Db; close: () => Promise<void> }> {
  const cache = new URL('../../node_modules/.cache/waybill/', import.meta.url).pathname
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'bench-'))
  const db = await openDb(join(folder, 'bench.db'), { synchronous })
  return {
    db,
    async close() {
      db.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
