import type { CandidateChoice, DialectName, ToolCall } from '../candidate.ts'
import { jsonBytes } from '../json-text.ts'
import type { JsonObject } from '../json-value.ts'
import { finishKind } from '../stop-reasons.ts'
import type { Translation } from './ledger.ts'

export interface ResponseHead {
  /** The id of the trace without dashes; ids in the answer are made from it. */
  readonly id: string
  readonly created: number
  readonly model: string | null
  readonly usage: JsonObject
}

/** An answer as a response (dialects 5.4). Nothing of it is kept, so no later request can go on with it. */
export function toResponses(choice: CandidateChoice, from: DialectName, head: ResponseHead): Translation {
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
