import { type Db, rowsOf } from './db.ts'

/** How many milliseconds this clock is ahead of the database server's; 0 where the difference is less than its answer can show. */
export async function aheadOfServer(db: Pick<Db, 'execute'>, now: () => Date): Promise<number> {
  const before = now().getTime()
  const answer = await db.execute('select unixepoch() as seconds')
  const after = now().getTime()
  const server = (rowsOf<{ seconds: number }>(answer)[0]?.seconds ?? 0) * 1000
  return Math.max(0, before - server - 1000) + Math.min(0, after - server)
}
