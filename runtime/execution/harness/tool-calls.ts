import type { StepKind } from '../../../shared/wire/runtime/run.ts'
import { type SchemaCheck, schemaCheckOrRefusal } from '../../json-schema/schema-check.ts'
import type { Decision, ProposedAction } from '../approvals.ts'
import { AllSuspended, RunFailure, StepFailure, Suspended, type SuspendedUntil } from '../failure.ts'
import { inexactProblem } from '../inexact-problem.ts'
import { type Message, type ToolCall, type ToolResult, withoutImages } from '../models/model.ts'
import { unreadable, writtenArguments } from '../models/tool-arguments.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'
import { type Loop, use } from './agent-run.ts'
import { gateOf } from './confidence.ts'
import { gate } from './gate.ts'
import { cut, READ_RESULT, roomOf, textOf } from './long-results.ts'

/** Makes the calls of a turn side by side and gives their results in the order of the calls. */
export async function callTools(loop: Loop, turn: number, calls: readonly ToolCall[], before: readonly Message[]) {
  const { maxSteps } = loop.manifest.limits
  const wanted = calls.filter(({ name }) => loop.tools.has(name)).length
  // Before the first of them starts: if they cannot all be made, none is.
  if (loop.steps.started + wanted > maxSteps) {
    throw new RunFailure('limit_exceeded', `the run needs more than ${maxSteps} steps (limits.maxSteps)`)
  }
  const settled = await Promise.allSettled(
    calls.map(async (call, at) => {
      const called = await callTool(loop, turn, at + 1, call, before)
      const kind = loop.tools.get(call.name)?.kind
      const stepId = `${kind}-${turn}-${at + 1}`
      const room = roomOf(loop.model.contextTokens, calls.length)
      if (kind !== 'mcp' || called.failed) return asResult(loop, stepId, call, called, room)
      const { output, images } = withoutImages(called.output)
      const result = asResult(loop, stepId, call, { failed: false, output }, room)
      return images.length === 0 ? result : { ...result, images }
    }),
  )
  const results: ToolResult[] = []
  const parked: SuspendedUntil[] = []
  let failure: unknown
  for (const one of settled) {
    if (one.status === 'fulfilled') results.push(one.value)
    else if (one.reason instanceof Suspended) parked.push(one.reason.until)
    // What ended the run counts before what merely ended a call.
    else if (failure === undefined || one.reason instanceof RunFailure) failure = one.reason
  }
  if (failure !== undefined) throw failure
  if (parked.length > 0) throw new AllSuspended(parked)
  return results
}

export type Called =
  | { failed: false; output: unknown }
  /** `code` is absent where no call was made: the tool is not there, its arguments do not fit, or a human said no. */
  | { failed: true; kind: StepKind; message: string; code?: string }

function asResult(loop: Loop, stepId: string, { id, name }: ToolCall, called: Called, room: number): ToolResult {
  const whole = called.failed
    ? JSON.stringify({ error: called.message, ...(called.code !== undefined && { code: called.code }) })
    : textOf(called.output)
  // A part that was asked for is given as it is.
  const content = name === READ_RESULT ? whole : cut(whole, stepId, room)
  if (content !== whole) loop.hasLongResult = true
  return {
    callId: id,
    content,
    failed: called.failed,
    name,
  }
}

/** One call of a tool: what it gave, or why it did not. */
export async function callTool(
  loop: Loop,
  turn: number,
  index: number,
  { name, arguments: said }: Omit<ToolCall, 'id'>,
  before: readonly Message[],
): Promise<Called> {
  const tool = loop.tools.get(name)
  if (!tool) return { failed: true, kind: 'tool', message: `there is no tool called ${name}` }
  const { kind } = tool
  const place = `${turn}-${index}`
  const given = tool.coerceArguments?.(said) ?? said
  if (!tool.wasTaken?.(place)) {
    const why = unreadable(said)
    if (why !== undefined) return { failed: true, kind, message: `${name} was not called: ${why}` }
    const written = writtenArguments(said)
    const inexact = written === undefined ? undefined : inexactProblem(written, checkOf(tool))
    if (inexact !== undefined) return { failed: true, kind, message: `${name} was not called: ${inexact}` }
    const problem = argumentProblem(tool, given)
    if (problem !== undefined) return { failed: true, kind, message: problem }
  }
  try {
    const { refusal, to, earlier } = await allowed(loop, tool, place, given, before)
    if (refusal !== undefined) return { failed: true, kind, message: refusal }
    // As it was asked about, it may have been redacted.
    const goesTo = to === undefined ? undefined : (now: string) => to === now || to === loop.redact?.text(now)
    const stepId = `${kind}-${place}`
    const action = { name, arguments: given, ...(tool.to !== undefined && { to: tool.to }) }
    const outcome = await loop.steps.run(
      {
        stepId,
        kind,
        name,
        effect: tool.effect(given),
        onInterrupted: tool.onInterrupted(given),
        action,
        ...(tool.timeoutMs !== undefined && { timeoutMs: tool.timeoutMs }),
        ...(tool.intent && { intent: tool.intent(given) }),
      },
      async call => {
        if (tool.coerceArguments && earlier !== undefined && !(await loop.approvals.stillFits(earlier, action))) {
          throw new StepFailure('connector_not_ready', OTHER_ARGUMENTS)
        }
        return tool.call(given, { runId: loop.runId, turn, index, stepId, ...(goesTo && { goesTo }) }, call)
      },
    )
    use(loop, outcome)
    return { failed: false, output: outcome.output }
  } catch (error) {
    // The caller gets the reason and may try something else.
    if (error instanceof StepFailure) return { failed: true, kind, message: error.message, code: error.code }
    throw error
  }
}

const OTHER_ARGUMENTS = 'a human has approved it with other arguments: its connector was changed since'

interface Agreed {
  /** The sentence that the model gets instead of the call. */
  refusal?: string
  /** Where the call goes. */
  to?: string
  /** The step of a decision that an earlier claim of the run has read. */
  earlier?: string
}

/** Whether a call may be made, and how. */
async function allowed(
  loop: Loop,
  tool: ExposedTool,
  place: string,
  given: Record<string, unknown>,
  before: readonly Message[],
): Promise<Agreed> {
  const { manifest } = loop
  // It is a question to a human already.
  if (tool.kind === 'approval' || tool.name === READ_RESULT) return {}
  const action = { name: tool.name, arguments: given, ...(tool.to !== undefined && { to: tool.to }) }
  const prompt = `Allow ${tool.name}?`
  if (tool.needsApproval || manifest.approvals.tools.some(rule => covers(rule, tool, given))) {
    return decided(loop, `approval-${place}`, 'approval_required', prompt, action)
  }
  const { confidence } = manifest
  const covered = confidence && gateOf(confidence.gates, tool)
  if (!confidence || covered === undefined) return {}
  const score = await gate(loop, {
    place,
    gate: covered,
    tool: tool.name,
    arguments: given,
    before,
    policy: confidence,
  })
  if (score >= confidence.threshold) return {}
  if (confidence.onLow === 'fail') {
    throw new RunFailure('low_confidence', `confidence ${score} is below ${confidence.threshold}`, {
      stepId: `confidence-${place}`,
    })
  }
  return decided(loop, `approval-${place}`, 'low_confidence', `${prompt} The model's confidence is ${score}.`, action)
}

type Question = [
  loop: Loop,
  stepId: string,
  reason: 'approval_required' | 'low_confidence' | 'anomaly',
  prompt: string,
  action?: ProposedAction,
]

/** A question to a human as a step of its own; undefined once it is approved. */
export const ask = async (...question: Question): Promise<string | undefined> => (await decided(...question)).refusal

async function decided(...[loop, stepId, reason, prompt, action]: Question): Promise<Agreed> {
  const { output, replayed } = await loop.steps.run(
    { stepId, kind: 'approval', name: reason, effect: 'idempotent', onInterrupted: 'retry' },
    async ({ attempt }) => ({
      output: await loop.approvals.ask({ stepId, attempt, reason, prompt, ...(action && { action }) }),
    }),
  )
  const { approved, comment, to, isOther } = output as Decision
  if (isOther) return { refusal: OTHER_ARGUMENTS }
  if (approved) return { ...(to !== undefined && { to }), ...(replayed && { earlier: stepId }) }
  return { refusal: `a human said no${comment === undefined ? '' : `: ${comment}`}` }
}

/** A rule is a name, the beginning of names with `*`, or `connectors:write` or `mcp:write` for all of them that do more than read. */
function covers(rule: string, { name, family, effect }: ExposedTool, given: Record<string, unknown>): boolean {
  const [of, write] = rule.split(':')
  if (write === 'write') return family === of && family !== 'tools' && effect(given) !== 'read'
  return rule.endsWith('*') ? name.startsWith(rule.slice(0, -1)) : name === rule
}

const checks = new WeakMap<object, SchemaCheck>()

function checkOf({ parameters }: ExposedTool): SchemaCheck {
  let check = checks.get(parameters)
  if (!check) {
    check = schemaCheckOrRefusal(parameters)
    checks.set(parameters, check)
  }
  return check
}

function argumentProblem(tool: ExposedTool, given: unknown): string | undefined {
  const fault = checkOf(tool)(given)
  return fault && `the arguments of ${tool.name} do not fit: ${fault.at} ${fault.message}`
}
