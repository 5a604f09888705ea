import type { Candidate, CandidateChoice, DialectName, Tokens } from '../candidate.ts'
import { callId } from '../chat/answer.ts'
import { atLeast, writtenBytes } from '../estimate.ts'
import { jsonBytes } from '../json-text.ts'
import type { JsonObject } from '../json-value.ts'
import { chatFinish, messagesStop } from '../stop-reasons.ts'
import type { Translation } from './ledger.ts'
import { toolInput } from './to-messages-history.ts'
import { toResponses } from './to-responses.ts'
import { chatUsageOf, messagesUsageOf, responsesUsageOf } from './usage.ts'

export interface AnswerOptions {
  /** Ids in the answer are made from it; the upstream's own id stays on the receipt. */
  readonly traceId: string
  /** Seconds since the epoch, for `created`. */
  readonly created: number
  /** Takes the place of the upstream's usage, when there was none. */
  readonly tokens?: Tokens
}

/**
 * An answer as the JSON of the other dialect (dialects 5.3); `emit` of that dialect makes a stream of it. A refused answer
 * is a bad response of its upstream: it holds what the client's dialect has no word for.
 */
export function translateAnswer(candidate: Candidate, to: DialectName, options: AnswerOptions): Translation {
  if (candidate.dialect === to) throw new Error(`An answer of the ${to} dialect needs no translation to it.`)
  const [choice, ...others] = candidate.choices
  if (choice === undefined || others.length > 0) return { ok: false, refused: ['choices: expected exactly one'] }
  // A count of zero would be taken for one, so an unknown count is estimated.
  const tokens = options.tokens ?? candidate.tokens ?? atLeast(null, writtenBytes(candidate))
  const id = options.traceId.replaceAll('-', '')
  if (to === 'responses') {
    const { model, dialect } = candidate
    return toResponses(choice, dialect, { id, created: options.created, model, usage: responsesUsageOf(tokens) })
  }
  return to === 'messages'
    ? toMessages(choice, { id: `msg_${id}`, model: candidate.model, usage: messagesUsageOf(tokens) })
    : toChat(choice, {
        id: `chatcmpl-${id}`,
        created: options.created,
        model: candidate.model,
        usage: chatUsageOf(tokens),
      })
}

function toMessages(choice: CandidateChoice, { id, model, usage }: JsonObject): Translation {
  const { text, refusal, toolCalls, finish, extras } = choice
  const refused: string[] = []
  const stop = messagesStop(finish)
  if (stop === undefined) refused.push(`finish_reason: ${finish} has no counterpart`)
  const content: JsonObject[] = [text, refusal ?? ''].flatMap(words =>
    words === '' ? [] : [{ type: 'text', text: words }],
  )
  toolCalls.forEach((call, i) => {
    const input = toolInput(call.arguments)
    if (input === undefined) refused.push(`tool_calls[${i}].function.arguments: expected the text of a JSON object`)
    content.push({ type: 'tool_use', id: call.id || callId(0, i), name: call.name, input: input ?? {} })
  })
  if (refused.length > 0) return { ok: false, refused }
  const body = {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content,
    // A forced call ends with `stop` in the chat dialect; messages clients go by the stop reason to run tools.
    stop_reason: refusal !== null ? 'refusal' : stop === 'end_turn' && toolCalls.length > 0 ? 'tool_use' : stop,
    stop_sequence: null,
    usage,
  }
  return { ok: true, body: jsonBytes(body), dropped: extras, notes: [] }
}

function toChat(choice: CandidateChoice, { id, created, model, usage }: JsonObject): Translation {
  const { text, refusal, toolCalls, finish, extras } = choice
  const word = chatFinish(finish)
  if (word === undefined) return { ok: false, refused: [`stop_reason: ${finish} has no counterpart`] }
  const message = {
    role: 'assistant',
    content: refusal !== null || (text === '' && toolCalls.length > 0) ? null : text,
    // A refusal without words is expressed by the finish alone: the chat dialect has no empty one.
    refusal: refusal || null,
    ...(toolCalls.length === 0
      ? {}
      : {
          tool_calls: toolCalls.map(call => ({
            id: call.id,
            type: 'function',
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
  }
  const body = {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: word }],
    usage,
  }
  return { ok: true, body: jsonBytes(body), dropped: extras, notes: [] }
}
