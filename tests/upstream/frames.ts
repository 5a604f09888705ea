import { chatAnswer, messagesAnswer } from './answers.ts'
import { responsesAnswer } from './responses.ts'

type Json = Record<string, unknown>

export const event = (name: string, data: object): string =>
  `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`
export const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

/** What streams of a block: the shell it opens with, and its pieces. */
const OPENED: Record<string, (block: Json) => { shell: Json; deltas: Json[] }> = {
  text: ({ text }) => ({
    shell: { type: 'text', text: '' },
    deltas: halves(String(text)).map(piece => ({ type: 'text_delta', text: piece })),
  }),
  thinking: ({ thinking, signature }) => ({
    shell: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...halves(String(thinking)).map(piece => ({ type: 'thinking_delta', thinking: piece })),
      { type: 'signature_delta', signature },
    ],
  }),
  tool_use: ({ id, name, input }) => ({
    shell: { type: 'tool_use', id, name, input: {} },
    deltas: ['', ...halves(typeof input === 'string' ? input : JSON.stringify(input))].map(partial_json => ({
      type: 'input_json_delta',
      partial_json,
    })),
  }),
}

/** A messages answer with these blocks. */
export const messageOf = (content: readonly Json[], rest: Json = {}) => ({
  ...messagesAnswer(),
  content,
  stop_reason: content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn',
  ...rest,
})

/** The frames that a provider sends for a messages answer. */
export function messageFrames(answer: Json & { content: readonly Json[] }): string[] {
  const { content, stop_reason, stop_sequence, stop_details, usage, ...shell } = answer
  const counted = usage as Json | undefined
  return [
    event('message_start', {
      message: {
        ...shell,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        ...(counted && { usage: { ...counted, output_tokens: Math.min(1, Number(counted.output_tokens)) } }),
      },
    }),
    ...content.flatMap((block, index) => blockFrames(block, index)),
    event('message_delta', {
      delta: { stop_reason, stop_sequence, ...(stop_details !== undefined && { stop_details }) },
      ...(counted && { usage: { output_tokens: counted.output_tokens } }),
    }),
    event('message_stop', {}),
  ]
}

export function blockFrames(block: Json, index: number): string[] {
  const { shell, deltas } = OPENED[String(block.type)]?.(block) ?? { shell: block, deltas: [] }
  return [
    event('content_block_start', { index, content_block: shell }),
    ...deltas.map(delta => event('content_block_delta', { index, delta })),
    event('content_block_stop', { index }),
  ]
}

/** A chat answer with these messages, one for each choice. */
export const completionOf = (messages: readonly Json[], finish?: string, rest: Json = {}) => ({
  ...chatAnswer(),
  choices: messages.map(({ logprobs = null, ...message }, index) => ({
    index,
    message: { role: 'assistant', content: null, refusal: null, ...message },
    logprobs,
    finish_reason: finish ?? (message.tool_calls === undefined ? 'stop' : 'tool_calls'),
  })),
  ...rest,
})

interface Choice {
  index: number
  message: Json
  logprobs: unknown
  finish_reason: string
}

/** The frames that a provider sends for a chat answer; choices take turns. */
export function completionFrames(answer: Json & { choices: readonly Choice[] }): string[] {
  const { choices, usage, ...shell } = answer
  const chunk = (list: readonly object[], counted: unknown = null) =>
    data({ ...shell, object: 'chat.completion.chunk', choices: list, ...(usage !== undefined && { usage: counted }) })
  const pieces = choices.map(choicePieces)
  const longest = Math.max(0, ...pieces.map(({ length }) => length))
  const turns = Array.from({ length: longest }, (_, at) => pieces.flatMap(list => list[at] ?? []))
  return [
    ...turns.flat().map(piece => chunk([piece])),
    ...(usage === undefined ? [] : [chunk([], usage)]),
    'data: [DONE]\n\n',
  ]
}

function choicePieces({ index, message, logprobs, finish_reason }: Choice): object[] {
  const { role, content, refusal, tool_calls, ...more } = message
  const piece = (delta: object, finish: string | null = null, odds: unknown = null) => ({
    index,
    delta,
    logprobs: odds,
    finish_reason: finish,
  })
  const calls = (tool_calls ?? []) as (Json & { index?: number; function: Json })[]
  return [
    piece({ role, content: content === null ? null : '', refusal: null }),
    ...Object.entries(more).map(([name, value]) => piece({ [name]: value })),
    ...(typeof content === 'string'
      ? halves(content).map((text, i) => piece({ content: text }, null, i === 0 ? logprobs : null))
      : []),
    ...(typeof refusal === 'string' ? halves(refusal).map(text => piece({ refusal: text })) : []),
    ...calls.flatMap(({ index: at, ...call }, i) => [
      piece({ tool_calls: [{ index: at ?? i, ...call, function: { ...call.function, arguments: '' } }] }),
      ...halves(String(call.function.arguments)).map(text =>
        piece({ tool_calls: [{ index: at ?? i, function: { arguments: text } }] }),
      ),
    ]),
    piece({}, finish_reason),
  ]
}

/** Two pieces that never part a surrogate pair. */
function halves(text: string): string[] {
  const points = [...text]
  const middle = Math.ceil(points.length / 2)
  return [points.slice(0, middle).join(''), points.slice(middle).join('')].filter(piece => piece !== '')
}

/** A response with these items. */
export const responseOf = (items: readonly Json[], rest: Json = {}) => ({
  ...responsesAnswer(''),
  output: items,
  ...rest,
})

/** The frames that a provider sends for a response. */
export function responseFrames(answer: Json & { output: readonly Json[] }): string[] {
  const inProgress = { ...answer, status: 'in_progress', output: [], usage: null, incomplete_details: null }
  const events: [string, Json][] = [
    ['response.created', { response: inProgress }],
    ['response.in_progress', { response: inProgress }],
    ...answer.output.flatMap((item, i) => itemEvents(item, i)),
    [answer.status === 'incomplete' ? 'response.incomplete' : 'response.completed', { response: answer }],
  ]
  return events.map(([name, rest], sequence_number) => event(name, { sequence_number, ...rest }))
}

function itemEvents(item: Json, output_index: number): [string, Json][] {
  const at = { item_id: item.id, output_index }
  const { shell, pieces } = ITEMS[String(item.type)]?.(item, at) ?? { shell: item, pieces: [] }
  return [
    ['response.output_item.added', { output_index, item: shell }],
    ...pieces,
    ['response.output_item.done', { output_index, item }],
  ]
}

const ITEMS: Record<string, (item: Json, at: Json) => { shell: Json; pieces: [string, Json][] }> = {
  message: (item, at) => ({
    shell: { ...item, status: 'in_progress', content: [] },
    pieces: (item.content as Json[]).flatMap((part, content_index): [string, Json][] => {
      const [member, name] = part.type === 'refusal' ? ['refusal', 'refusal'] : ['text', 'output_text']
      const where = { ...at, content_index }
      return [
        ['response.content_part.added', { ...where, part: { ...part, [member]: '' } }],
        ...halves(String(part[member])).map((delta): [string, Json] => [`response.${name}.delta`, { ...where, delta }]),
        [`response.${name}.done`, { ...where, [member]: part[member] }],
        ['response.content_part.done', { ...where, part }],
      ]
    }),
  }),
  function_call: (item, at) => ({
    shell: { ...item, status: 'in_progress', arguments: '' },
    pieces: [
      ...halves(String(item.arguments)).map((delta): [string, Json] => [
        'response.function_call_arguments.delta',
        { ...at, delta },
      ]),
      ['response.function_call_arguments.done', { ...at, name: item.name, arguments: item.arguments }],
    ],
  }),
}
