import { costExtras, costMeta, type OpenCalls } from './call-cost.ts'
import type { EngineDeps } from './engine-deps.ts'
import type { History } from './journal/history.ts'
import type { RunJournal } from './journal/run-journal.ts'
import { plainMessage } from './journal/well-formed.ts'
import type { Claimed } from './lease-store.ts'

const ASKS_A_MODEL = new Set<string>(['model', 'confidence'])

/** No step is left without a last word in a journal that is sealed. */
export async function closeOpenSteps(
  { lostCall }: Pick<EngineDeps, 'lostCall'>,
  run: Claimed,
  { journal, history, open }: { journal: RunJournal; history: History; open: OpenCalls },
  { code, message }: { code: string; message: string },
): Promise<void> {
  for (const [stepId, state] of history.steps) {
    if (state.is === 'completed' || state.is === 'failed') continue
    const payload = { error: plainMessage(message), code, transient: false }
    const reading = open.get(stepId)
    const cost = await reading?.(run.epoch)
    const lost = state.is === 'open' && reading === undefined && ASKS_A_MODEL.has(state.meta.stepKind ?? '')
    const extras = lost ? { extra: lostCall(run, stepId) } : costExtras(cost)
    journal.append({ kind: 'step_failed', stepId, attempt: state.attempt, payload, meta: costMeta(cost) }, extras)
  }
}
