/** Levels of an output that is kept. What reads and writes values calls itself for each level, here and in what verifies a journal. */
export const MOST_LEVELS = 480
const CUT_OFF = `nested deeper than ${MOST_LEVELS} levels`

/**
 * A JSON value in which every text is well-formed Unicode, and nothing is nested deeper than a journal may be. Answers of models and tools are
 * cut in odd places, and half of a surrogate pair has no UTF-8 form, so it could be neither hashed nor stored.
 */
export function wellFormed(value: unknown): unknown {
  return isWellFormed(value, 0) ? value : repaired(value, 0)
}

function isWellFormed(value: unknown, level: number): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  if (level === MOST_LEVELS) return false
  if (Array.isArray(value)) return value.every(one => isWellFormed(one, level + 1))
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  for (const key in value) {
    if (!key.isWellFormed() || !isWellFormed((value as Record<string, unknown>)[key], level + 1)) return false
  }
  return true
}

function repaired(value: unknown, level: number): unknown {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (level === MOST_LEVELS) return CUT_OFF
  if (Array.isArray(value)) return value.map(one => repaired(one, level + 1))
  const members = Object.entries(value).map(([key, member]) => [key.toWellFormed(), repaired(member, level + 1)])
  return Object.fromEntries(members)
}

/** A message from outside as one that may stand in a text column. */
export function plainMessage(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.slice(0, 2000).toWellFormed().replaceAll('\0', '\uFFFD')
}
