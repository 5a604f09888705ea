/**
 * A JSON value in which every text is well-formed Unicode. Answers of models and tools are cut in odd places, and half of a
 * surrogate pair has no UTF-8 form, so it could be neither hashed nor stored.
 */
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(wellFormed)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key.toWellFormed(), wellFormed(member)]))
}

/** A message from outside as one that may stand in a text column. */
export function plainMessage(error: unknown, most = 2000): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.slice(0, most).toWellFormed().replaceAll('\0', '\uFFFD')
}
