import { type Db, rowsOf } from './db.ts'

/** The first damage of a file, its indexes included: by one that is wrong a row is not found, and what is read from it alone is another text. */
export async function damageOf(db: Db): Promise<string | undefined> {
  const [first] = rowsOf<{ integrity_check: string }>(await db.execute('pragma integrity_check(1)'))
  return first?.integrity_check === 'ok' ? undefined : first?.integrity_check
}

/** The rows are whole then, and an index can be made of them again. */
export const isOfIndex = (damage: string): boolean => damage.includes(' index ')
