import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openDb } from '../shared/host/open-libsql.ts'
import { groupCommit } from '../shared/sql/group-commit.ts'
import { insertRows } from '../shared/sql/insert-rows.ts'
import { requireBackend } from './backends/require.ts'

function hasShell(): boolean {
  try {
    execFileSync('sqlite3', ['--version'])
    return true
  } catch {
    return false
  }
}

if (requireBackend('sqlite3', hasShell(), 'apt-get install sqlite3, or bash scripts/setup-host.sh')) {
  it('writes files that SQLite itself reads, while the writer still has them open', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-outside-'))
    const path = join(folder, 'store.db')
    const db = await openDb(path)
    await db.execute('create table rows (seq integer primary key, words text not null) strict')
    const insert = insertRows('rows', { seq: 'integer', words: 'text' })
    const writer = groupCommit<{ seq: number; words: string }, void>({
      async write(rows) {
        await db.execute(insert.statement(rows))
        return rows.map(() => undefined)
      },
    })
    await Promise.all(Array.from({ length: 2000 }, (_, seq) => writer.append({ seq, words: `é ${seq} "quoted"\n` })))

    const ask = (sql: string) => execFileSync('sqlite3', [path, sql], { encoding: 'utf8' }).trim()
    expect(ask('pragma integrity_check')).toBe('ok')
    expect(ask('pragma journal_mode')).toBe('wal')
    expect(ask('select count(*), min(seq), max(seq) from rows')).toBe('2000|0|1999')
    expect(ask('select hex(words) from rows where seq = 7')).toBe(
      Buffer.from('é 7 "quoted"\n').toString('hex').toUpperCase(),
    )

    await writer.close()
    db.close()
    await rm(folder, { recursive: true, force: true })
  })
}
