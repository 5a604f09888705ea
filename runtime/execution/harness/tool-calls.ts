import { type Schema, Validator } from '@cfworker/json-schema'
import { Parked, type ParkedUntil, RunFailure, StepFailure } from '../failure.ts'
import type { Message, ToolCall, ToolResult } from '../models/model.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'
import { type Loop, use } from './agent-run.ts'
import { gateOf } from './confidence.ts'
import { gate } from './gate.ts'

/** Several calls of one turn wait at once, each for its own. */
export class AllParked extends Error {
  override name = 'AllParked'
  readonly all: readonly ParkedUntil[]
  constructor(all: readonly ParkedUntil[]) {
    super('parked')
    this.all = all
  }
}

/** Makes the calls of a turn side by side and gives their results in the order of the calls. */
export async function callTools(loop: Loop, turn: number, calls: readonly ToolCall[], before: readonly Message[]) {
  const settled = await Promise.allSettled(calls.map((call, at) => callTool(loop, turn, at + 1, call, before)))
  const results: ToolResult[] = []
  const parked: ParkedUntil[] = []
  let failure: unknown
  for (const one of settled) {
    if (one.status === 'fulfilled') results.push(one.value)
    else if (one.reason instanceof Parked) parked.push(one.reason.until)
    // What ended the run counts before what merely ended a call.
    else if (failure === undefined || one.reason instanceof RunFailure) failure = one.reason
  }
  if (failure !== undefined) throw failure
  if (parked.length > 0) throw new AllParked(parked)
  return results
}

async function callTool(
  loop: Loop,
  turn: number,
  index: number,
  { id, name, arguments: said }: ToolCall,
  before: readonly Message[],
): Promise<ToolResult> {
  const result = (content: unknown, failed: boolean): ToolResult => ({
    ...{ callId: id, name, failed },
    content: typeof content === 'string' ? content : JSON.stringify(content),
  })
  const tool = loop.tools.get(name)
  if (!tool) return result({ error: `there is no tool called ${name}` }, true)
  const given = tool.asMeant?.(said) ?? said
  const problem = argumentProblem(tool, given)
  if (problem !== undefined) return result({ error: problem }, true)
  try {
    const place = `${turn}-${index}`
    const refusal = await allowed(loop, tool, place, given, before)
    if (refusal !== undefined) return result({ error: refusal }, true)
    const stepId = `${tool.kind}-${place}`
    const outcome = await loop.steps.run(
      {
        ...{ stepId, kind: tool.kind, name },
        effect: tool.effect(given),
        onInterrupted: tool.onInterrupted(given),
        action: { name, arguments: given },
        ...(tool.timeoutMs !== undefined && { timeoutMs: tool.timeoutMs }),
        ...(tool.intent && { intent: tool.intent(given) }),
      },
      call => tool.call(given, { runId: loop.runId, turn, index, stepId }, call),
    )
    use(loop, outcome)
    return result(outcome.output, false)
  } catch (error) {
    // The model is told and may try something else.
    if (error instanceof StepFailure) return result({ error: error.message, code: error.code }, true)
    throw error
  }
}

/** Whether a call may be made: undefined, or the sentence that the model is told instead. */
async function allowed(
  loop: Loop,
  tool: ExposedTool,
  place: string,
  given: Record<string, unknown>,
  before: readonly Message[],
): Promise<string | undefined> {
  const { manifest } = loop
  // It is a question to a human already.
  if (tool.kind === 'approval') return undefined
  const action = { name: tool.name, arguments: given }
  const prompt = `Allow ${tool.name}?`
  if (tool.needsApproval || manifest.approvals.tools.some(rule => covers(rule, tool, given))) {
    return ask(loop, `approval-${place}`, 'approval_required', prompt, action)
  }
  const { confidence } = manifest
  const covered = confidence && gateOf(confidence.gates, tool)
  if (!confidence || covered === undefined) return undefined
  const score = await gate(loop, {
    place,
    gate: covered,
    tool: tool.name,
    arguments: given,
    before,
    policy: confidence,
  })
  if (score >= confidence.threshold) return undefined
  if (confidence.onLow === 'fail') {
    throw new RunFailure('low_confidence', `confidence ${score} is below ${confidence.threshold}`, {
      stepId: `confidence-${place}`,
    })
  }
  return ask(loop, `approval-${place}`, 'low_confidence', `${prompt} The model's confidence is ${score}.`, action)
}

/** A question to a human as a step of its own; undefined once it is approved. */
export async function ask(
  loop: Loop,
  stepId: string,
  reason: 'approval_required' | 'low_confidence' | 'anomaly',
  prompt: string,
  action?: { name: string; arguments: unknown },
): Promise<string | undefined> {
  const { output } = await loop.steps.run(
    { stepId, kind: 'approval', name: reason, effect: 'idempotent', onInterrupted: 'retry' },
    async ({ attempt }) => ({
      output: await loop.approvals.ask({ stepId, attempt, reason, prompt, ...(action && { action }) }),
    }),
  )
  const { approved, comment } = output as { approved: boolean; comment?: string }
  return approved ? undefined : `a human said no${comment === undefined ? '' : `: ${comment}`}`
}

/** A rule is a name, the beginning of names with `*`, or `connectors:write` or `mcp:write` for all of them that do more than read. */
function covers(rule: string, { name, family, effect }: ExposedTool, given: Record<string, unknown>): boolean {
  const [of, write] = rule.split(':')
  if (write === 'write') return family === of && family !== 'tools' && effect(given) !== 'read'
  return rule.endsWith('*') ? name.startsWith(rule.slice(0, -1)) : name === rule
}

const validators = new WeakMap<object, Validator>()

function argumentProblem({ name, parameters }: ExposedTool, given: unknown): string | undefined {
  let validator = validators.get(parameters)
  if (!validator) {
    validator = new Validator(structuredClone(parameters) as Schema, '2020-12', false)
    validators.set(parameters, validator)
  }
  const { valid, errors } = validator.validate(given)
  if (valid) return undefined
  const inner = errors.findLast(({ keyword }) => keyword !== 'false')
  return `the arguments of ${name} do not fit: ${inner ? `${inner.instanceLocation} ${inner.error}` : 'see its schema'}`
}
