import type { Client, InArgs, InStatement, TransactionMode } from '@libsql/client/web'
import { localClient } from '../../shared/host/local-client.ts'
import { type Db, prepareDb } from '../../shared/sql/db.ts'
import { reads } from '../../shared/sql/guarded-client.ts'

export interface SqlWork {
  statements: number
  /** Each is a transaction that may write: one wait for the disk. */
  commits: number
  /** Rows that were inserted, changed or removed. */
  rows: number
  /** The statements themselves, for finding where a number comes from. */
  texts: string[]
}

export interface CountedDb {
  db: Db
  /** What was done since the last time this was asked. */
  taken(): Promise<SqlWork>
  /** Resolves when a statement has been executed that holds this text. */
  executed(part: string): Promise<void>
  close(): void
}

/** The loops of schedules and webhooks look about once a second, whether anything happens or not: how often is the machine's doing. */
const LOOKING_ROUND = /^\s*(?:select|delete)\b[\s\S]*\bfrom (?:schedules|schedule_fires|webhook_deliveries)\b/

/** A store in a file, counted below everything that could send it a statement. */
export async function countedDb(path: string): Promise<CountedDb> {
  const inner = localClient(path, { timeout: 5000 })
  let work = { statements: 0, commits: 0, texts: [] as string[] }
  let rowsBefore = 0
  const waiting = new Map<string, () => void>()

  function note(statements: readonly (InStatement | [string, InArgs?])[], commits: boolean): void {
    const texts = statements.map(textOf)
    if (texts.every(text => LOOKING_ROUND.test(text))) return
    work.statements += texts.length
    if (commits) work.commits++
    work.texts.push(...texts.map(text => text.replace(/\s+/g, ' ').trim()))
    for (const [part, done] of waiting) if (texts.some(text => text.includes(part))) done()
  }

  const client: Client = {
    ...inner,
    async execute(statement: InStatement, args?: InArgs) {
      const result = await (typeof statement === 'string' ? inner.execute(statement, args) : inner.execute(statement))
      note([statement], !reads(textOf(statement)))
      return result
    },
    async batch(statements: (InStatement | [string, InArgs?])[], mode?: TransactionMode) {
      const results = await inner.batch(statements, mode)
      note(statements, mode !== 'read')
      return results
    },
    transaction: () => Promise.reject(new Error('an interactive transaction cannot be counted; use db.write')),
  }
  const db = await prepareDb(client, { kind: 'file', name: path })
  const changes = async () => Number((await inner.execute('select total_changes() as n')).rows[0]?.n)

  return {
    db,
    async taken() {
      const rows = await changes()
      const { statements, commits, texts } = work
      const taken = { statements, commits, rows: rows - rowsBefore, texts }
      rowsBefore = rows
      work = { statements: 0, commits: 0, texts: [] }
      return taken
    },
    executed: part => new Promise(resolve => waiting.set(part, resolve)),
    close: () => db.close(),
  }
}

function textOf(statement: InStatement | [string, InArgs?]): string {
  return typeof statement === 'string' ? statement : Array.isArray(statement) ? statement[0] : statement.sql
}
