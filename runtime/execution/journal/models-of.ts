import type { JournalEntry } from './event.ts'

/** The models whose answers a journal holds, in the order of their names. */
export function modelsOf(
  entries: readonly Pick<JournalEntry, 'kind' | 'meta'>[],
  more: Iterable<string> = [],
): string[] {
  const models = new Set(more)
  for (const { kind, meta } of entries) {
    if (kind === 'step_completed' && typeof meta.model === 'string') models.add(meta.model)
  }
  return [...models].sort()
}
