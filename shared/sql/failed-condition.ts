/**
 * Whether a transaction failed because a condition of it did not hold: a statement that puts null where none may be stands for the
 * condition, since SQLite has no other way to end a transaction from within.
 */
export function isFailedCondition(error: unknown, column: `${string}.${string}`): boolean {
  return error instanceof Error && error.message.includes(`NOT NULL constraint failed: ${column}`)
}
