import type { Db } from './db.ts'
import { reads } from './read-statement.ts'

/**
 * A database whose writes are forwarded to another thread, which waits for the write lock and for the disk in the caller's place. Reads stay here: in
 * WAL mode they see every commit that was told of, and wait for none.
 */
export function forwardingDb(db: Db, write: Db['write']): Db {
  return {
    ...db,
    write: async statements => (statements.length === 0 ? [] : write(statements)),
    async execute(statement) {
      if (reads(typeof statement === 'string' ? statement : statement.sql)) return db.execute(statement)
      const [result] = await write([statement])
      return result!
    },
  }
}
