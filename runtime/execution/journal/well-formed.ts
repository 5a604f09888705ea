/**
 * A JSON value in which every text is well-formed Unicode. Answers of models and tools are cut in odd places, and half of a
 * surrogate pair has no UTF-8 form, so it could be neither hashed nor stored.
 */
export function wellFormed(value: unknown): unknown {
  return isWellFormed(value) ? value : repaired(value)
}

function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(isWellFormed)
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  for (const key in value) {
    if (!key.isWellFormed() || !isWellFormed((value as Record<string, unknown>)[key])) return false
  }
  return true
}

function repaired(value: unknown): unknown {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(repaired)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key.toWellFormed(), repaired(member)]))
}

/** A message from outside as one that may stand in a text column. */
export function plainMessage(error: unknown, most = 2000): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.slice(0, most).toWellFormed().replaceAll('\0', '\uFFFD')
}
