import { dbFault } from '../../shared/sql/db-fault.ts'

/** Of those who write at once one always gets through, so this many may write one agent at once. */
const TRIES = 20

/** Runs `act` again when a constraint says that another writer was first: what it read is then no longer so. */
export async function againAfterConflict<T>(act: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await act()
    } catch (error) {
      if (tried >= TRIES || !isConflict(error)) throw error
    }
  }
}

/** The local driver has a code for it, a server only its words. */
function isConflict(error: unknown): boolean {
  return error instanceof Error && dbFault(error) === 'statement' && /constraint/i.test(error.message)
}
