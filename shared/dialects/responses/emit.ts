import { parseJson } from '../json-text.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isArray, isObject } from '../json-value.ts'
import { sseFrame } from '../sse-frame.ts'
import { textPieces } from '../text-pieces.ts'

type Event = readonly [type: string, data: JsonObject]

/** The frames of a stream that a client turns back into the given response; the body must be one that `decodeResponses` accepts. */
export function emitResponses(body: Uint8Array): Uint8Array[] {
  const response = asObject(parseJson(body))
  const inProgress = {
    ...response,
    status: 'in_progress',
    output: [],
    usage: null,
    incomplete_details: null,
    ...('completed_at' in response ? { completed_at: null } : {}),
  }
  const events: Event[] = [
    ['response.created', { response: inProgress }],
    ['response.in_progress', { response: inProgress }],
    ...asArray(response.output).flatMap((item, i) => itemEvents(asObject(item), i)),
    [response.status === 'incomplete' ? 'response.incomplete' : 'response.completed', { response }],
  ]
  return events.map(([type, data], sequence_number) => sseFrame(type, { type, sequence_number, ...data }))
}

function itemEvents(item: JsonObject, output_index: number): Event[] {
  const at = { item_id: asString(item.id) ?? '', output_index }
  const [shell, inside] = partsOf(item, at)
  const inProgress = 'status' in item && shell !== item ? { ...shell, status: 'in_progress' } : shell
  return [
    ['response.output_item.added', { output_index, item: inProgress }],
    ...inside,
    ['response.output_item.done', { output_index, item }],
  ]
}

/** How an item begins, and what comes before it is done. An item without pieces is whole in both. */
function partsOf(item: JsonObject, at: JsonObject): [JsonObject, Event[]] {
  switch (item.type) {
    case 'message':
      return [
        { ...item, content: [] },
        asArray(item.content).flatMap((part, i) => contentEvents(asObject(part), { ...at, content_index: i })),
      ]
    case 'function_call': {
      const text = asString(item.arguments) ?? ''
      const done = { ...at, name: item.name ?? '', arguments: text }
      const type = 'response.function_call_arguments'
      return [{ ...item, arguments: '' }, textEvents(type, text, at, done)]
    }
    case 'custom_tool_call': {
      const text = asString(item.input) ?? ''
      return [{ ...item, input: '' }, textEvents('response.custom_tool_call_input', text, at, { ...at, input: text })]
    }
    case 'reasoning':
      return reasoningEvents(item, at)
    default:
      return [item, []]
  }
}

function textEvents(type: string, text: string, at: JsonObject, done: JsonObject, more: JsonObject = {}): Event[] {
  return [
    ...textPieces(text).map((delta): Event => [`${type}.delta`, { ...at, delta, ...more }]),
    [`${type}.done`, done],
  ]
}

function contentEvents(part: JsonObject, at: JsonObject): Event[] {
  const name = CONTENT_TEXT[String(part.type)]
  const added = (shell: JsonObject): Event => ['response.content_part.added', { ...at, part: shell }]
  const done: Event = ['response.content_part.done', { ...at, part }]
  if (name === undefined) return [added(part), done]
  const { member, type } = name
  const text = asString(part[member]) ?? ''
  const isText = part.type === 'output_text'
  const odds: Json = isArray(part.logprobs) ? part.logprobs : []
  const annotations = isText ? asArray(part.annotations) : []
  const shell = { ...part, [member]: '', ...(isText ? { annotations: [] } : {}) }
  return [
    added('logprobs' in part ? { ...shell, logprobs: [] } : shell),
    ...textEvents(
      type,
      text,
      at,
      { ...at, [member]: text, ...(isText ? { logprobs: odds } : {}) },
      isText ? { logprobs: [] } : {},
    ),
    ...annotations.map(
      (annotation, i): Event => ['response.output_text.annotation.added', { ...at, annotation_index: i, annotation }],
    ),
    done,
  ]
}

const CONTENT_TEXT: Readonly<Record<string, { member: string; type: string }>> = {
  output_text: { member: 'text', type: 'response.output_text' },
  refusal: { member: 'refusal', type: 'response.refusal' },
  reasoning_text: { member: 'text', type: 'response.reasoning_text' },
}

function reasoningEvents(item: JsonObject, at: JsonObject): [JsonObject, Event[]] {
  const summary = asArray(item.summary).flatMap((part, i): Event[] => {
    const where = { ...at, summary_index: i }
    const text = isObject(part) ? (asString(part.text) ?? '') : ''
    return [
      ['response.reasoning_summary_part.added', { ...where, part: { ...asObject(part), text: '' } }],
      ...textEvents('response.reasoning_summary_text', text, where, { ...where, text }),
      ['response.reasoning_summary_part.done', { ...where, part }],
    ]
  })
  const content = asArray(item.content).flatMap((part, i) => contentEvents(asObject(part), { ...at, content_index: i }))
  const shell = { ...item, summary: [], ...(isArray(item.content) ? { content: [] } : {}) }
  return [shell, [...summary, ...content]]
}
