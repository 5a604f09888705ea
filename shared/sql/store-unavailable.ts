import { dbFault } from './db-fault.ts'

const away = new WeakSet<Error>()

/** What the triggers of a database say that a tenant is leaving. */
export const MOVING = 'the tenant is being moved to another database: try again in a moment'

export const isMoving = (error: unknown): boolean => error instanceof Error && error.message.includes(MOVING)

/** Runs a statement on a server; where the server could not be reached, did not answer or had no time, the error is known as that from then on. */
export async function markUnavailable<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof Error && dbFault(error) !== 'statement') away.add(error)
    throw error
  }
}

/** True where the store was not reached: nothing is wrong with what was asked, and asking again later may go well. */
export function isStoreUnavailable(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) if (away.has(one)) return true
  return false
}
