import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Exporter } from '../../shared/telemetry/exporter.ts'
import type { RunObserver } from '../execution/engine-deps.ts'
import type { JournalEntry } from '../execution/journal/event.ts'
import type { Claimed } from '../execution/lease-store.ts'
import { runSpan, stepSpan } from './run-spans.ts'

/** Runs as traces. What a run was given and what it said never leaves with them: names, counts, codes and times do. */
export function telemetry(exporter: Pick<Exporter, 'add'>, sha256: Sha256): RunObserver {
  const starts = new WeakMap<Claimed, Map<string, JournalEntry>>()

  function startsOf(run: Claimed): Map<string, JournalEntry> {
    const known = starts.get(run)
    if (known) return known
    // What an earlier owner began.
    const began = run.events.filter(({ kind }) => kind === 'step_started')
    const made = new Map(began.map(entry => [entry.stepId, entry]))
    starts.set(run, made)
    return made
  }

  return {
    kept(run, entries) {
      const open = startsOf(run)
      for (const entry of entries) {
        if (entry.kind === 'step_started') open.set(entry.stepId, entry)
        const span = stepSpan(run, entry, open.get(entry.stepId), sha256)
        if (span) exporter.add(span)
      }
    },
    ended(ended) {
      exporter.add(runSpan(ended, sha256))
    },
  }
}
