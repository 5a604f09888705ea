import type { Sha256 } from '../../../shared/sign/sha256.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import type { Redaction } from '../../privacy/redaction.ts'
import type { Approvals } from '../approvals.ts'
import { cacheMeta, countedParts } from '../call-cost.ts'
import type { Spent } from '../journal/commit.ts'
import type { EventDraft } from '../journal/event.ts'
import type { History } from '../journal/history.ts'
import type { FoundModel, ModelAnswer, ModelCall, ModelRequest } from '../models/model.ts'
import type { Steps } from '../step.ts'
import type { StepCall, StepOutcome, StepResult, StepSpec } from '../step-spec.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'
import type { DeltaSink } from '../turn.ts'
import { conversation } from './conversation.ts'
import { readResultTool, roomOf } from './long-results.ts'
import { type KeepTools, type KeptFacts, recordFacts } from './request-facts.ts'

/** Everything the loop of one run works with. Nothing in it knows a socket, a file or a clock. */
export interface AgentRun {
  runId: string
  manifest: Manifest
  /** Earlier turns of a session, oldest first, then the message of this run. */
  opening: readonly { role: 'user' | 'assistant'; text: string }[]
  model: FoundModel
  tools: ReadonlyMap<string, ExposedTool>
  steps: Steps
  journal: { append(draft: EventDraft): unknown }
  history: History
  approvals: Pick<Approvals, 'ask' | 'stillFits'>
  sha256: Sha256
  /** What may be neither sent on nor kept. */
  redact?: Redaction | undefined
  /** Told what the model says, as it says it. */
  voice?: DeltaSink
  /** A trial of one model step ends with its answer, and makes none of the calls that it asks for. */
  onlyStep?: string
  /** Absent where there are none, or what is sent to models is not kept. */
  keepTools?: KeepTools | undefined
}

export interface Loop extends AgentRun {
  talk: ReturnType<typeof conversation>
  used: Spent
  /** Anomalies that a human has let pass. */
  passed: Set<string>
  /** A result was too long to be given whole: from then on the model may read parts of results. */
  hasLongResult: boolean
  /** Of what the loop sends to its model; a program says itself what it sends. */
  facts?: KeptFacts
}

export function startLoop(run: AgentRun): Loop {
  const talk = conversation(run.manifest.systemPrompt, run.sha256)
  for (const { role, text } of run.opening) talk.add(role === 'user' ? { role, text } : { role, text, toolCalls: [] })
  const readResult = readResultTool(run.history, roomOf(run.model.contextTokens))
  const tools = new Map([...run.tools, [readResult.name, readResult]])
  const used = { tokensIn: 0, tokensOut: 0, costNano: 0 }
  return { ...run, tools, talk, used, passed: new Set(), hasLongResult: false }
}

/** What a model step records: enough to go on from, and what it cost. */
export type ModelReply = Pick<ModelAnswer, 'text' | 'toolCalls' | 'stop' | 'blocks' | 'cappedByBudget' | 'thinking'>

export interface AskSpec extends Pick<StepSpec, 'stepId' | 'kind' | 'inputHash'> {
  request: ModelRequest
  /** What is said is part of the answer, not of the way to it. */
  aloud?: boolean
}

/** One model call as a step. */
export async function askModel(loop: Loop, { stepId, kind, inputHash, request, aloud }: AskSpec): Promise<ModelReply> {
  const { model, steps } = loop
  const voice = aloud ? loop.voice : undefined
  const outcome = await steps.run(
    {
      stepId,
      kind,
      name: model.id,
      effect: 'idempotent',
      onInterrupted: 'retry',
      ready: model.ready,
      ...(inputHash && { inputHash }),
      ...(loop.facts && recordFacts(loop.facts, loop.history.request)),
    },
    async step => {
      voice?.begin()
      // A piece may hold half of what is to be taken out, so where something is, the answer is emitted whole.
      const call: ModelCall = { ...modelCall(step), ...(voice && !loop.redact && { onDelta: voice.delta }) }
      return recorded(await model.ask(request, call))
    },
  )
  use(loop, outcome)
  const said = outcome.output as ModelReply
  voice?.said(said)
  return said
}

/** The call of a step as a model is given it. */
export function modelCall({ key, signal, repeated, metered }: StepCall): ModelCall {
  return { key, signal, repeated, metered }
}

/** Counts what a step used, now or in an earlier life, so that limits see the same numbers after a restart. */
export function use({ used }: Loop, { meta }: StepOutcome): void {
  used.tokensIn += meta.tokensIn ?? 0
  used.tokensOut += meta.tokensOut ?? 0
  used.costNano += Math.round((meta.costUsd ?? 0) * 1e9)
}

export function recorded(answer: ModelAnswer): StepResult {
  const {
    text,
    toolCalls,
    stop,
    spent,
    provider,
    model,
    unpriced,
    simulated,
    responseId,
    routerTraceId,
    extraStatements,
  } = answer
  const { blocks, cappedByBudget, gatesFailed, parts, thinking } = answer
  // Members in the order of the canonical text, which spares its maker the sorting.
  return {
    output: {
      ...(blocks && { blocks }),
      ...(cappedByBudget && { cappedByBudget }),
      stop,
      text,
      ...(thinking !== undefined && { thinking }),
      toolCalls,
    },
    spent,
    parts: countedParts(parts, unpriced),
    model,
    ...(extraStatements && { extra: extraStatements }),
    meta: {
      ...cacheMeta(parts),
      ...(gatesFailed && { gatesFailed }),
      model,
      provider,
      ...(responseId !== undefined && { responseId }),
      ...(routerTraceId !== undefined && { routerTraceId }),
      ...(simulated && { simulated }),
      ...(unpriced && { unpriced }),
    },
  }
}
