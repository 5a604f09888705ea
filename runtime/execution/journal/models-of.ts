import type { JournalEntry } from './event.ts'

/** A call that was cut off has an answer as well, as far as it went. */
const SAY_WHO_ANSWERED = new Set(['step_completed', 'step_failed', 'step_retrying'])

/** The models whose answers a journal holds, in the order of their names. */
export function modelsOf(
  entries: readonly Pick<JournalEntry, 'kind' | 'meta'>[],
  more: Iterable<string> = [],
): string[] {
  const models = new Set(more)
  for (const { kind, meta } of entries) {
    if (SAY_WHO_ANSWERED.has(kind) && typeof meta.model === 'string') models.add(meta.model)
  }
  return [...models].sort()
}
