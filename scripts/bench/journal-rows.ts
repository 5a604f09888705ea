import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { insertRows } from '../../shared/sql/insert-rows.ts'

export const columnNames = ['run', 'seq', 'event', 'hash'] as const

/**
 * The shape of a journal: the event as its canonical text, which is what the hash covers and what a reader gets back byte
 * for byte, under a run's number. One row is about 450 bytes.
 */
export function journalTable(table: string): string {
  return `create table ${table} (run integer not null, seq integer not null, event text not null, hash blob not null, primary key (run, seq))`
}

export function journalInsert(table: string) {
  return insertRows(table, { run: 'integer', seq: 'integer', event: 'text', hash: 'blob' })
}

let runs = 0

/** A run's number is given when it is created, so that runs of the same moment are neighbours in the index. */
export function newRun(): { run: number; id: string } {
  return { run: ++runs, id: randomUUID() }
}

export type JournalRow = ReturnType<typeof journalRow>

const hash = Buffer.from('c2c79dc89354c7cc79fb6dc532ca58d56e04c6bc8b209e6c0b983889a817b038', 'hex')

export function journalRow({ run, id }: { run: number; id: string }, seq: number) {
  const step = `tool-${seq >> 1}-1`
  const kind = seq % 2 === 1 ? 'step_started' : 'step_completed'
  const meta = `{"idempotencyKey":"${id}:${step}:1","name":"search","nodeId":"embedded","stepKind":"tool"}`
  const payload = `{"output":{"ok":true,"text":"${'é and plain words '.repeat(6)}","turn":${seq}}}`
  const event = `{"at":"2026-01-02T03:04:05.678Z","attempt":1,"kind":"${kind}","meta":${meta},"payload":${payload},"runId":"${id}","seq":${seq},"stepId":"${step}"}`
  return { run, seq, event, hash }
}

/** A database file on the project's disk: the system's temporary folder may be memory, where a sync costs nothing. */
export async function benchDb(
  synchronous: 'full' | 'normal',
  checkpointPages?: number,
): Promise<{ db: Db; close: () => Promise<void> }> {
  const cache = new URL('../../node_modules/.cache/waybill/', import.meta.url).pathname
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'bench-'))
  const db = await openDb(join(folder, 'bench.db'), { synchronous, checkpointPages })
  return {
    db,
    async close() {
      db.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
