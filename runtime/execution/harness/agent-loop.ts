import { canonicalize } from '../../../shared/sign/jcs.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { RunFailure, StepFailure } from '../failure.ts'
import type { Message } from '../models/model.ts'
import { type AgentRun, askModel, type Loop, type ModelReply, startLoop } from './agent-run.ts'
import { loopDetector, watch } from './anomalies.ts'
import { charactersOf, textOnly } from './conversation.ts'
import { gate } from './gate.ts'
import { DEFAULT_CONTEXT, READ_RESULT } from './long-results.ts'
import { type OutputCheck, outputCheck } from './output.ts'
import { requestFacts } from './request-facts.ts'
import { ask, callTools } from './tool-calls.ts'

const FULL = 0.8
const KEPT_MESSAGES = 6
/** A provider that pauses an answer goes on with it; one that pauses it without end does not. */
const MOST_PAUSES = 10

/** Runs an agent to its output: ask the model, make the calls it wants, until it has nothing more to call. */
export async function agentLoop(run: AgentRun): Promise<Record<string, unknown>> {
  const loop: Loop = { ...startLoop(run), ...(hasFacts(run) && { facts: requestFacts(run) }) }
  const { manifest, talk } = loop
  const check = manifest.outputSchema && outputCheck(manifest.outputSchema)
  const circle = loopDetector()
  const all = [...loop.tools.values()].map(({ name, description, parameters }) => ({ name, description, parameters }))
  const short = all.filter(({ name }) => name !== READ_RESULT)
  let repairs = 0
  let pauses = 0
  /** What a paused answer has said so far. */
  let begun = ''
  for (let turn = 1; turn <= manifest.limits.maxTurns; turn++) {
    await compact(loop, turn)
    const before: readonly Message[] = manifest.confidence ? [...talk.messages] : talk.messages
    const said = await say(loop, turn, loop.hasLongResult ? all : short)
    const stepId = `model-${turn}`
    if (run.onlyStep === stepId) return { result: begun + said.text, toolCalls: said.toolCalls }
    if (said.stop === 'pause') {
      if (++pauses > MOST_PAUSES) {
        throw new RunFailure('limit_exceeded', `the model paused its answer ${pauses} times in a row`, { stepId })
      }
      talk.add({ role: 'assistant', text: said.text, toolCalls: [], ...(said.blocks && { blocks: said.blocks }) })
      begun += said.text
      continue
    }
    const text = begun + said.text
    pauses = 0
    begun = ''
    const cut = cutShort(said, text, manifest)
    if (cut) throw new RunFailure(cut.code, cut.message, { stepId, output: { result: text } })
    if (said.toolCalls.length > 0) {
      talk.add({ role: 'assistant', text: said.text, toolCalls: said.toolCalls })
      const results = await callTools(loop, turn, said.toolCalls, before)
      talk.add({ role: 'tool', results })
      const calls = canonicalize(said.toolCalls.map(({ name, arguments: given }) => [name, given]))
      await watch(loop, stepId, circle.turn(calls, canonicalize(results.map(({ content }) => content))))
      continue
    }
    await watch(loop, stepId, 0)
    const checked: OutputCheck = check ? check(text) : { ok: true, output: { result: text } }
    if (checked.ok) {
      await gateOutput(loop, turn, { ...said, text }, before)
      return checked.output
    }
    if (repairs++ >= manifest.outputRepairs) {
      throw new RunFailure('output_invalid', checked.problem, { stepId })
    }
    talk.add({ role: 'assistant', text: said.text, toolCalls: [] })
    const schema = JSON.stringify(manifest.outputSchema)
    talk.add({ role: 'user', text: `${checked.problem}. Answer with one JSON object that fits this schema: ${schema}` })
  }
  throw new RunFailure('limit_exceeded', `no answer after ${manifest.limits.maxTurns} turns (limits.maxTurns)`)
}

/** Most short runs have none. */
function hasFacts({ model, keepTools, history }: AgentRun): boolean {
  return model.contextTokens !== undefined || keepTools !== undefined || history.request !== undefined
}

async function say(
  loop: Loop,
  turn: number,
  tools: Parameters<typeof askModel>[1]['request']['tools'],
): Promise<ModelReply> {
  const { manifest, talk } = loop
  const stepId = `model-${turn}`
  const request = {
    system: manifest.systemPrompt,
    messages: talk.messages,
    tools,
    maxOutputTokens: manifest.limits.maxOutputTokens,
    ...(manifest.outputSchema && { outputSchema: manifest.outputSchema }),
  }
  try {
    return await askModel(loop, { stepId, kind: 'model', inputHash: talk.inputHash, request, aloud: true })
  } catch (error) {
    if (error instanceof StepFailure) throw new RunFailure('model_error', error.message, { stepId, cause: error })
    throw error
  }
}

/** Folds the older part of a conversation that nears the model's window into a summary, made by a step of its own. */
async function compact(loop: Loop, turn: number): Promise<void> {
  const { talk, model, manifest } = loop
  const most = (model.contextTokens ?? DEFAULT_CONTEXT) * FULL - manifest.limits.maxOutputTokens
  if (talk.tokens <= most || talk.messages.length < 3) return
  const keep = keptFrom(talk.messages, most)
  const older = talk.messages.slice(0, talk.messages.length - keep)
  const text = older.map(message => canonicalize(textOnly(message).message)).join('\n')
  const messages: Message[] = [
    {
      role: 'user',
      text: `Summarise this conversation for yourself, with every fact, decision and open task in it:\n${text}`,
    },
  ]
  const request = {
    system: 'You shorten conversations without losing facts.',
    messages,
    tools: [],
    maxOutputTokens: Math.min(4096, manifest.limits.maxOutputTokens),
  }
  const stepId = `compaction-${turn}`
  const { text: summary, stop } = await askModel(loop, { stepId, kind: 'model', inputHash: talk.inputHash, request })
  if (stop === 'refusal') {
    throw new RunFailure('model_refused', 'the model refused to shorten the conversation', { stepId })
  }
  talk.replace({ role: 'user', text: `The conversation so far, shortened: ${summary}` }, keep)
}

/** How many of the last messages stay: what fits into half of the room, and a result never without the call it answers. */
function keptFrom(messages: readonly Message[], tokens: number): number {
  let keep = 0
  let characters = 0
  for (const message of messages.slice(-KEPT_MESSAGES).toReversed()) {
    characters += charactersOf(message)
    if (characters / 4 > tokens / 2) break
    keep++
  }
  while (keep > 0 && messages[messages.length - keep]?.role === 'tool') keep--
  return keep
}

async function gateOutput(loop: Loop, turn: number, said: ModelReply, before: readonly Message[]): Promise<void> {
  const { confidence: policy } = loop.manifest
  if (!policy?.gates.includes('output')) return
  const score = await gate(loop, { place: String(turn), gate: 'output', text: said.text, before, policy })
  if (score >= policy.threshold) return
  const stepId = `confidence-${turn}`
  if (policy.onLow === 'fail') {
    throw new RunFailure('low_confidence', `confidence ${score} is below ${policy.threshold}`, { stepId })
  }
  const prompt = `Accept this answer? The model's confidence is ${score}.`
  const refusal = await ask(loop, `approval-${turn}`, 'low_confidence', prompt, {
    name: 'output',
    arguments: said.text,
  })
  if (refusal !== undefined) throw new RunFailure('low_confidence', refusal, { stepId })
}

/** Why an answer is none to go on with, in words that say what to do; undefined for a whole one. */
function cutShort(
  { stop, cappedByBudget }: Pick<ModelReply, 'stop' | 'cappedByBudget'>,
  text: string,
  { limits }: Pick<Manifest, 'limits'>,
): { code: 'output_truncated' | 'model_refused'; message: string } | undefined {
  if (stop === 'length') {
    const why = cappedByBudget
      ? 'what the budget leaves: raise the budget'
      : `its longest length: raise limits.maxOutputTokens (now ${limits.maxOutputTokens}), shorten what the model is sent`
    return { code: 'output_truncated', message: `the answer was cut off at ${why}, or ask for less` }
  }
  if (stop !== 'refusal') return undefined
  const said = text.trim() === '' ? 'without a word' : 'what it said is in output.result'
  return { code: 'model_refused', message: `the model or its provider refused to answer: ${said}` }
}
