import type { Sha256 } from '../../../shared/sign/sha256.ts'
import { pageTurn } from '../../../shared/time/sleep.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { StepFailure } from '../failure.ts'
import { type History, outputOf } from '../journal/history.ts'
import type { ModelRequest } from '../models/model.ts'
import type { Steps } from '../step.ts'
import type { StepCall } from '../step-spec.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'
import { agentLoop } from './agent-loop.ts'
import type { AgentRun } from './agent-run.ts'
import type { OfferedTool } from './request-facts.ts'

/** What a model step of a run stood on. */
export interface Recorded extends Pick<AgentRun, 'runId' | 'opening'> {
  /** With the hints of a session in its system prompt. */
  manifest: Manifest
  /** As it was when the step began. */
  history: History
  tools: readonly OfferedTool[]
  contextTokens?: number | undefined
  /** The digest of the conversation that the step recorded. */
  inputHash?: string | undefined
  sha256: Sha256
}

export interface Rebuilt {
  request: ModelRequest
  /** Its digest is the recorded one, so this is what was sent. */
  exact: boolean
}

/** Nothing is executed here: the loop stops where its journal does. */
class NotRecorded extends Error {
  override name = 'NotRecorded'
}

const STEPS_AT_ONCE = 16

const stop = (): never => {
  throw new NotRecorded('this was not recorded')
}

/**
 * What a step of a run sent to its model. The loop that made the request is run again over what the journal recorded, as a recovery does,
 * up to the step: so compactions, repairs, refused calls and long results come out as they were. Undefined: the loop does not come there.
 */
export async function rebuildRequest(stepId: string, recorded: Recorded): Promise<Rebuilt | undefined> {
  const { runId, opening, manifest, history, tools, contextTokens, inputHash, sha256 } = recorded
  let found: Rebuilt | undefined
  let sent: ModelRequest | undefined
  let started = 0
  const steps: Steps = {
    async run(spec, call) {
      // A loop of thousands of steps leaves others their turn.
      if (++started % STEPS_AT_ONCE === 0) await pageTurn()
      if (spec.stepId === stepId) {
        await call(noCall()).catch(() => undefined)
        if (sent && !found) found = { request: sent, exact: inputHash !== undefined && spec.inputHash === inputHash }
        return stop()
      }
      const state = history.steps.get(spec.stepId)
      if (state?.is === 'completed') return { output: await outputOf(state), meta: state.meta, replayed: true }
      if (state?.is === 'failed') throw new StepFailure(state.code, state.error, { transient: state.transient })
      return stop()
    },
    get started() {
      return started
    },
  }
  // Arguments that were taken fitted, as a connector reads them; those that did not left no step.
  const places = new Set([...history.steps.keys(), stepId].map(id => /-(\d+-\d+)(?:-\d+)?$/.exec(id)?.[1]))
  const wasTaken = (place: string) => places.has(place)
  const ask = (request: ModelRequest) => {
    sent = { ...request, messages: [...request.messages] }
    return stop()
  }
  const run: AgentRun = {
    runId,
    opening,
    manifest,
    history,
    sha256,
    steps,
    tools: new Map(tools.map(tool => [tool.name, unused(tool, wasTaken)])),
    model: { id: '', ask, ...(contextTokens !== undefined && { contextTokens }) },
    journal: { append: () => undefined },
    approvals: { ask: stop, stillFits: stop },
  }
  // Whatever ends the loop: it has come to the step before, or not at all.
  await agentLoop(run).catch(() => undefined)
  return found
}

const noCall = (): StepCall => ({
  key: '',
  attempt: 1,
  signal: new AbortController().signal,
  intent: {},
  repeated: false,
  metered: () => undefined,
})

/** A tool whose calls are all on record. */
function unused({ writes, ...tool }: OfferedTool, wasTaken: (place: string) => boolean): ExposedTool {
  return { ...tool, wasTaken, effect: () => (writes ? 'once' : 'read'), onInterrupted: () => 'retry', call: stop }
}
