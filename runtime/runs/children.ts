import { canonicalize } from '../../shared/sign/jcs.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { ChildRuns } from '../execution/tools/sub-agent-tool.ts'
import { redactedInput } from '../privacy/redaction.ts'
import type { Admit } from './service.ts'
import type { RunStore } from './store.ts'

export interface ChildRunsDeps {
  runs: Pick<RunStore, 'create' | 'get' | 'summary'>
  /** Cancels a run. */
  cancel: (id: string, reason: string | undefined) => Promise<unknown>
  admit: Admit
  dayOf: (ms: number) => string
  /** The current version of an agent of that tenant. */
  findAgent: (
    tenantId: string,
    name: string,
  ) => Promise<{ agentId: string; versionId: string; manifest: Manifest } | undefined>
  now: () => Date
}

/** Releases the open runs of a parent: the next process that claims one ends it, and with it what that one has called. */
const ABANDON = `update runs set updated_ms = ?2, ending = 'cancelled', epoch = epoch + 1, owner = null, due_ms = 0
  where parent_run_id = ?1 and status in ('queued', 'running', 'waiting')
    and not exists (select 1 from remote_runs where run_id = runs.id)`

/** The runs that one run starts: of its own tenant, one level deeper. */
export function childRuns(
  { runs, cancel, findAgent, admit, dayOf, now }: ChildRunsDeps,
  parent: { id: string; tenantId: string; depth: number },
): ChildRuns {
  return {
    async start({ id, agentName, input }) {
      const agent = await findAgent(parent.tenantId, agentName)
      if (!agent) return 'unknown_agent'
      const { tenantId } = parent
      const createdMs = now().getTime()
      const { agentId, versionId, manifest } = agent
      const candidate = {
        tenantId,
        agentId,
        agentName,
        versionId,
        manifest,
        input: redactedInput(manifest, canonicalize(input)),
      }
      await admit(candidate, id, ({ statements, exceeded }) =>
        runs.create({
          id,
          tenantId,
          agentName,
          agentId,
          versionId,
          input: candidate.input,
          labels: '{}',
          createdMs,
          day: dayOf(createdMs),
          isolation: manifest.isolation,
          budgetExceeded: exceeded,
          trigger: { kind: 'subagent', ref: parent.id },
          parentRunId: parent.id,
          depth: parent.depth + 1,
          also: statements,
        }),
      )
      // Who cancelled its parent meanwhile did not see it.
      const above = await runs.summary(parent.id)
      if (above?.status === 'cancelled') await cancel(id, above.cancelReason)
      return 'started'
    },
    async look(id) {
      const run = await runs.get(id)
      if (!run) return undefined
      const { status, output, error } = run
      return { status, ...(output && { output }), ...(error && { error }) }
    },
    abandoned: atMs => [{ sql: ABANDON, args: [parent.id, atMs] }],
  }
}
