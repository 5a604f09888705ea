import type { Candidate, CandidateChoice, DialectName, Tokens, ToolCall } from '../candidate.ts'
import { callId } from '../chat/answer.ts'
import { atLeast, writtenBytes } from '../estimate.ts'
import { jsonBytes } from '../json-text.ts'
import type { JsonObject } from '../json-value.ts'
import { isCallId } from '../messages/messages.ts'
import { chatFinish, finishKind, messagesStop } from '../stop-reasons.ts'
import type { Translation } from './ledger.ts'
import { toolInput } from './to-messages-history.ts'

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
    ? toMessages(choice, { id, model: candidate.model, usage: messagesUsageOf(tokens) })
    : toChat(choice, {
        id: `chatcmpl-${id}`,
        created: options.created,
        model: candidate.model,
        usage: chatUsageOf(tokens),
      })
}

function toMessages(choice: CandidateChoice, { id, model, usage }: Omit<ResponseHead, 'created'>): Translation {
  const { text, refusal, toolCalls, finish, extras } = choice
  const taken = new Set<string>()
  const refused: string[] = []
  const stop = messagesStop(finish)
  if (stop === undefined) refused.push(`finish_reason: ${finish} has no counterpart`)
  const content: JsonObject[] = [text, refusal ?? ''].flatMap(words =>
    words === '' ? [] : [{ type: 'text', text: words }],
  )
  toolCalls.forEach((call, i) => {
    const input = toolInput(call.arguments)
    if (input === undefined) refused.push(`tool_calls[${i}].function.arguments: expected the text of a JSON object`)
    // One that another answer may have, or that the dialect does not take, could not be sent back to a host of it.
    const isOwn = isCallId(call.id) && call.id !== callId(0, i) && !taken.has(call.id)
    taken.add(call.id)
    content.push({ type: 'tool_use', id: isOwn ? call.id : `tu_${id}_${i}`, name: call.name, input: input ?? {} })
  })
  if (refused.length > 0) return { ok: false, refused }
  const body = {
    id: `msg_${id}`,
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

/** Token classes as a usage object of the messages dialect. */
export function messagesUsageOf(tokens: Tokens): JsonObject {
  return {
    input_tokens: tokens.uncached,
    cache_creation_input_tokens: tokens.cache_write_5m + tokens.cache_write_1h,
    cache_read_input_tokens: tokens.cache_read,
    cache_creation: {
      ephemeral_5m_input_tokens: tokens.cache_write_5m,
      ephemeral_1h_input_tokens: tokens.cache_write_1h,
    },
    output_tokens: tokens.output,
  }
}

/** Token classes as a usage object of the Responses API. */
function responsesUsageOf(tokens: Tokens): JsonObject {
  const written = tokens.cache_write_5m + tokens.cache_write_1h
  const input = tokens.uncached + written + tokens.cache_read
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: tokens.cache_read, cache_write_tokens: written },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + tokens.output,
  }
}

/** Token classes as a usage object of the chat dialect, whose prompt count includes the cached parts. */
export function chatUsageOf(tokens: Tokens): JsonObject {
  const prompt = tokens.uncached + tokens.cache_write_5m + tokens.cache_write_1h + tokens.cache_read
  return {
    prompt_tokens: prompt,
    completion_tokens: tokens.output,
    total_tokens: prompt + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cache_read },
  }
}

interface ResponseHead {
  /** The id of the trace without dashes; ids in the answer are made from it. */
  readonly id: string
  readonly created: number
  readonly model: string | null
  readonly usage: JsonObject
}

/** An answer as a response (dialects 5.4). Nothing of it is kept, so no later request can go on with it. */
function toResponses(choice: CandidateChoice, from: DialectName, head: ResponseHead): Translation {
  const { finish, extras, toolCalls } = choice
  const kind = finishKind(from, finish)
  if (kind === 'pause' || kind === 'unknown') return { ok: false, refused: [`finish: ${finish} has no counterpart`] }
  // Official clients know the items of a response by the ids of their calls.
  if (new Set(toolCalls.map(({ id }) => id)).size < toolCalls.length)
    return { ok: false, refused: ['tool_calls: two of them have the same id'] }
  const parts = partsOf(choice, from)
  const isFiltered = kind === 'refusal' && !parts.some(({ type }) => type === 'refusal')
  const reason = kind === 'length' ? 'max_output_tokens' : isFiltered ? 'content_filter' : null
  const status = reason === null ? 'completed' : 'incomplete'
  const message = { id: `msg_${head.id}`, type: 'message', role: 'assistant', status, content: parts }
  const body = {
    id: `resp_${head.id}`,
    object: 'response',
    created_at: head.created,
    status,
    background: false,
    error: null,
    incomplete_details: reason === null ? null : { reason },
    instructions: null,
    metadata: {},
    model: head.model,
    output: [
      ...(parts.length > 0 || toolCalls.length === 0 ? [message] : []),
      ...toolCalls.map((call, i) => callItem(call, `${head.id}_${i}`)),
    ],
    parallel_tool_calls: true,
    previous_response_id: null,
    store: false,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    usage: head.usage,
  }
  return { ok: true, body: jsonBytes(body), dropped: extras, notes: [] }
}

function partsOf({ text, refusal }: CandidateChoice, from: DialectName): JsonObject[] {
  // In the messages dialect a refusal is the text itself.
  const said = refusal !== null && from === 'messages' ? '' : text
  return [
    ...(said === '' ? [] : [{ type: 'output_text', text: said, annotations: [], logprobs: [] }]),
    ...(refusal === null || refusal === '' ? [] : [{ type: 'refusal', refusal }]),
  ]
}

function callItem({ id, name, arguments: text, custom }: ToolCall, ownId: string): JsonObject {
  const status = 'completed'
  return custom === true
    ? { id: `ctc_${ownId}`, type: 'custom_tool_call', status, call_id: id, name, input: text }
    : { id: `fc_${ownId}`, type: 'function_call', status, call_id: id, name, arguments: text }
}
