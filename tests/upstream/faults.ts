import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { DialectName } from '../../shared/dialects/candidate.ts'
import type { ErrorClass } from '../../shared/wire/router/trace.ts'
import {
  blockFrames,
  completionFrames,
  completionOf,
  data,
  event,
  messageFrames,
  messageOf,
  responseFrames,
  responseOf,
} from './frames.ts'
import { cutAfter, json, type Part, sse, type Wire } from './wire.ts'

export interface Exchange {
  dialect: DialectName
  stream: boolean
}

/**
 * What a cascade of two rungs makes of the fault on the first: serves it after all, tries the second after an error or
 * a failed gate, or hands the refusal back.
 */
export type Outcome =
  | { kind: 'served' }
  | { kind: 'failover'; errorClass: ErrorClass }
  | { kind: 'overflow' }
  | { kind: 'escalation' }
  | { kind: 'returned'; errorClass: ErrorClass }

export interface Fault {
  name: string
  group: 'connect' | 'status' | 'body' | 'sse' | 'semantics' | 'time'
  wire: (exchange: Exchange) => Wire
  outcome: Outcome | ((exchange: Exchange) => Outcome)
  /** The dialects that have it. */
  dialects?: readonly DialectName[]
  /** Members that the request must hold. */
  request?: object
  /** Takes the machine so long that calls beside it would miss their times. */
  heavy?: boolean
}

const served: Outcome = { kind: 'served' }
const escalation: Outcome = { kind: 'escalation' }
const failover = (errorClass: ErrorClass): Outcome => ({ kind: 'failover', errorClass })
const returned = (errorClass: ErrorClass): Outcome => ({ kind: 'returned', errorClass })
const bad = failover('bad_response')

/** Times that the test's router is set to, in milliseconds; the faults lie on either side of them. */
export const TIMES = { firstByte: 2000, idle: 600, total: 2500, keepAlive: 1000 }
/** The largest answer that the test's router takes. */
export const MAX_RESPONSE = 12 * 1024 * 1024

export const TEXT = 'Grüße, 世界 😀.'

type Json = Record<string, unknown>
type Message = ReturnType<typeof messageOf> & Json
type Completion = ReturnType<typeof completionOf> & Json

/** An answer in the form that the request asked for. */
function answered(
  { dialect, stream }: Exchange,
  blocks: readonly Json[],
  choices: readonly Json[],
  rest: { message?: Json; completion?: Json; finish?: string } = {},
): Wire {
  if (dialect === 'messages') {
    const message = messageOf(blocks, rest.message)
    return stream ? sse(messageFrames(message)) : json(message)
  }
  if (dialect === 'responses') {
    const response = responseFor(choices[0] ?? {}, rest.finish, rest.completion)
    return stream ? sse(responseFrames(response)) : json(response)
  }
  const completion = completionOf(choices, rest.finish, rest.completion)
  return stream ? sse(completionFrames(completion)) : json(completion)
}

const CUT: Readonly<Record<string, string>> = { length: 'max_output_tokens', content_filter: 'content_filter' }

/** What a message of chat is as a response. */
function responseFor(message: Json, finish = 'stop', { usage, ...rest }: Json = { usage: null }): Response {
  const { content, refusal, reasoning_content: thought, tool_calls: calls = [] } = message
  const part = (type: string, member: string, text: unknown) =>
    typeof text === 'string' ? [{ type, [member]: text, ...(type === 'output_text' && { annotations: [] }) }] : []
  const said = [...part('output_text', 'text', content), ...part('refusal', 'refusal', refusal)]
  const status = 'completed'
  const output: Json[] = [
    ...(thought === undefined
      ? []
      : [{ id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: thought }] }]),
    ...(said.length === 0 ? [] : [{ id: 'msg_1', type: 'message', role: 'assistant', status, content: said }]),
    ...(calls as { id: string; function: Json }[]).map(({ id, function: fn }) => ({
      id: `fc_${id}`,
      type: 'function_call',
      status,
      call_id: id,
      ...fn,
    })),
  ]
  const reason = finish === 'stop' ? undefined : (CUT[finish] ?? finish)
  return responseOf(output, {
    ...rest,
    ...(usage !== null && { usage: usage === undefined ? undefined : countsOf(usage as Json) }),
    ...(reason !== undefined && { status: 'incomplete', incomplete_details: { reason } }),
  }) as Response
}
type Response = ReturnType<typeof responseOf> & Json

const countsOf = ({ prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details }: Json): Json => ({
  input_tokens: prompt_tokens,
  output_tokens: completion_tokens,
  total_tokens,
  ...(prompt_tokens_details !== undefined && { input_tokens_details: prompt_tokens_details }),
})

export const whole = (exchange: Exchange, text = TEXT): Wire =>
  answered(exchange, [{ type: 'text', text }], [{ content: text }])

/** The frames of a plain answer, whatever form was asked for. */
const frames = ({ dialect }: Exchange, text = TEXT): string[] => {
  if (dialect === 'responses') return responseFrames(responseFor({ content: text }))
  return dialect === 'messages'
    ? messageFrames(messageOf([{ type: 'text', text }]) as Message)
    : completionFrames(completionOf([{ content: text }]) as Completion)
}

const errorBody = ({ dialect }: Exchange, type: string, message: string, code: string | null = null): string =>
  JSON.stringify(
    dialect === 'messages'
      ? { type: 'error', error: { type, message }, request_id: 'req_fault' }
      : { error: { message, type, param: null, code } },
  )

const refusal =
  (
    status: number,
    type: string,
    message = `this is a ${status}`,
    headers: Record<string, string> = {},
    code?: string,
  ) =>
  (exchange: Exchange): Wire =>
    json(errorBody(exchange, type, message, code ?? null), status, { 'request-id': 'req_fault', ...headers })

const html = (status: number) => (): Wire =>
  json('<html><h1>Bad gateway</h1></html>', status, { 'content-type': 'text/html' })

const status = (code: number, outcome: Outcome, wire = refusal(code, 'api_error'), name = String(code)): Fault => ({
  name: `status ${name}`,
  group: 'status',
  wire,
  outcome,
})

const connect: Fault[] = [
  {
    name: 'reset before the head',
    group: 'connect',
    wire: () => ({ body: [], end: 'reset' }),
    outcome: failover('transport'),
  },
  {
    name: 'takes the call and says nothing',
    group: 'connect',
    wire: () => ({ body: [], end: 'stall' }),
    outcome: failover('timeout'),
  },
]

const limited = (headers: Record<string, string>) => refusal(429, 'rate_limit_error', 'slow down', headers)
const statuses: Fault[] = [
  status(400, returned('upstream_4xx'), refusal(400, 'invalid_request_error')),
  status(
    400,
    { kind: 'overflow' },
    refusal(400, 'invalid_request_error', 'prompt is too long: 9 > 8', {}, 'context_length_exceeded'),
    '400 overflow',
  ),
  status(
    400,
    returned('thinking_mismatch'),
    refusal(400, 'invalid_request_error', 'Invalid `signature` in `thinking` block'),
    '400 signature',
  ),
  status(401, failover('auth'), refusal(401, 'authentication_error')),
  status(402, failover('auth'), refusal(402, 'billing_error')),
  status(403, failover('auth'), refusal(403, 'permission_error')),
  status(404, returned('upstream_4xx'), refusal(404, 'not_found_error')),
  status(408, failover('timeout')),
  status(409, failover('upstream_4xx')),
  status(413, returned('upstream_4xx'), refusal(413, 'request_too_large', 'too many bytes')),
  status(425, failover('upstream_4xx')),
  status(429, failover('rate_limited'), limited({}), '429'),
  status(429, failover('rate_limited'), limited({ 'retry-after': '7' }), '429 seconds'),
  status(429, failover('rate_limited'), limited({ 'retry-after': 'Wed, 21 Oct 2037 07:28:00 GMT' }), '429 date'),
  status(429, failover('rate_limited'), limited({ 'retry-after-ms': '700' }), '429 milliseconds'),
  status(429, failover('rate_limited'), limited({ 'retry-after': '-5' }), '429 negative'),
  status(500, failover('upstream_5xx')),
  status(500, failover('upstream_5xx'), refusal(500, 'api_error', 'prompt is too long'), '500 that speaks of overflow'),
  status(502, failover('upstream_5xx'), html(502), '502 HTML'),
  status(503, failover('upstream_5xx')),
  status(504, failover('upstream_5xx')),
  status(529, failover('overloaded'), refusal(529, 'overloaded_error')),
  status(301, bad, () => json('moved', 301, { 'content-type': 'text/plain', location: 'https://elsewhere.invalid/' })),
  status(304, bad, () => ({ head: { status: 304, headers: {} }, body: [], end: 'whole' })),
  status(204, bad, () => ({ head: { status: 204, headers: {} }, body: [], end: 'whole' })),
  status(400, returned('upstream_4xx'), () => json('', 400, { 'content-type': 'text/plain' }), '400 without a body'),
]

const body = (name: string, wire: Fault['wire'], outcome: Fault['outcome'], more: Partial<Fault> = {}): Fault => ({
  name,
  group: 'body',
  wire,
  outcome,
  ...more,
})
const encoded =
  (encoding: string, encode: (bytes: Uint8Array) => Uint8Array, keep = 1) =>
  (exchange: Exchange): Wire => {
    const plain = whole(exchange)
    const bytes = encode(Buffer.from(plain.body.join('')))
    const { 'content-length': _, ...headers } = plain.head!.headers
    return {
      ...plain,
      head: { status: 200, headers: { ...headers, 'content-encoding': encoding } },
      body: [bytes.subarray(0, Math.ceil(bytes.length * keep))],
    }
  }
/** Byte by byte for a while; the rest in one piece. */
const loris = (exchange: Exchange, slowBytes: number, pauseMs: number): Wire => {
  const wire = whole(exchange)
  const bytes = Buffer.from(wire.body.join(''))
  const slow = Array.from(bytes.subarray(0, slowBytes), byte => [Uint8Array.of(byte), pauseMs] as Part[])
  return { ...wire, body: [...slow.flat(), bytes.subarray(slowBytes)] }
}
const measured = (exchange: Exchange, off: number): Wire => {
  const wire = whole(exchange)
  const length = Buffer.byteLength(wire.body.join('')) + off
  const headers = { ...wire.head!.headers, 'content-length': String(length), connection: 'close' }
  return { ...wire, head: { status: 200, headers }, end: off > 0 ? 'reset' : 'whole' }
}
const bodies: Fault[] = [
  body('head, then a stall', x => cutAfter(whole(x), 0, 'stall'), failover('timeout')),
  body('a stall in the middle', x => cutAfter(whole(x), 150, 'stall'), failover('timeout')),
  body('a reset after the head', x => cutAfter(whole(x), 0, 'reset'), failover('transport')),
  body('a reset in the middle', x => cutAfter(whole(x), 150, 'reset'), failover('transport')),
  body(
    'a reset before the last byte',
    x => cutAfter(whole(x), Buffer.byteLength(whole(x).body.join('')) - 1, 'reset'),
    failover('transport'),
  ),
  body('a reset in an error body', x => cutAfter(refusal(500, 'api_error')(x), 20, 'reset'), failover('transport')),
  body('one byte at a time', x => loris(x, 20, 10), served),
  body(
    'one byte at a time, without end',
    x => ({ ...loris(x, 60, 50), body: loris(x, 60, 50).body.slice(0, -1), end: 'stall' }),
    failover('timeout'),
  ),
  body('shorter than content-length', x => measured(x, 40), failover('transport')),
  body('longer than content-length', x => measured(x, -40), bad),
  body('gzip', encoded('gzip', gzipSync), served),
  body('br', encoded('br', brotliCompressSync), served),
  body('truncated gzip', encoded('gzip', gzipSync, 0.6), bad),
  body(
    'an encoding nobody knows',
    encoded('zz', bytes => bytes),
    served,
  ),
  body(
    'gzip that is none',
    encoded('gzip', bytes => bytes),
    bad,
  ),
  body('an empty 200', () => json(''), bad),
  body('an empty stream', () => sse([]), bad),
  body('HTML with 200', html(200), bad),
  body('a JSON array', () => json('[]'), bad),
  body('larger than the limit', x => oversize(x), bad, { heavy: true }),
  body('a stream that is larger than the limit', x => sse(framesOfSize(x, MAX_RESPONSE / 3, 4)), bad, { heavy: true }),
  body(
    'invalid UTF-8',
    x => ({ ...whole(x), head: { ...whole(x).head!, headers: withoutLength(whole(x)) }, body: brokenUtf8(x) }),
    bad,
  ),
  body(
    'an error object inside 200',
    x => json(errorBody(x, 'overloaded_error', 'busy')),
    x => failover(x.dialect === 'messages' ? 'overloaded' : 'upstream_5xx'),
  ),
  body('JSON for a stream', x => whole({ ...x, stream: false }), served),
  body('a stream for JSON', x => whole({ ...x, stream: true }), served),
  body('a stream that calls itself JSON', x => sse(frames(x), { 'content-type': 'application/json' }), bad),
  body(
    'JSON that calls itself a stream',
    x => ({
      ...whole({ ...x, stream: false }),
      head: { status: 200, headers: { 'content-type': 'text/event-stream' } },
    }),
    bad,
  ),
]

function withoutLength(wire: Wire): Record<string, string> {
  const { 'content-length': _, ...headers } = wire.head!.headers
  return headers
}
function brokenUtf8(exchange: Exchange): Uint8Array[] {
  const bytes = Buffer.from(whole(exchange).body.join(''))
  bytes[bytes.indexOf(0xc3)] = 0xff
  return [bytes]
}
function oversize({ dialect }: Exchange): Wire {
  const text = 'x'.repeat(MAX_RESPONSE)
  if (dialect === 'responses') return json(responseFor({ content: text }))
  return json(dialect === 'messages' ? messageOf([{ type: 'text', text }]) : completionOf([{ content: text }]))
}
/** The frame with the first piece of a text. */
const FIRST_PIECE = /text_delta|"content":"G|"delta":"G/

function framesOfSize(exchange: Exchange, size: number, times: number): string[] {
  const list = frames(exchange)
  const at = list.findIndex(frame => FIRST_PIECE.test(frame))
  const large = list[at]!.replace('Gr', 'Gr'.padEnd(size, 'x'))
  return [...list.slice(0, at), ...Array.from({ length: times }, () => large), ...list.slice(at + 1)]
}

/** Frames are played to clients that did not ask for a stream as well: the answer then has the wrong form on top. */
const framed = (
  name: string,
  change: (list: string[], exchange: Exchange) => readonly Part[],
  outcome: Fault['outcome'],
  more: Partial<Fault> = {},
): Fault => ({
  name,
  group: 'sse',
  wire: x => sse(change(frames(x), x)),
  outcome,
  ...more,
})
const M = { dialects: ['messages'] } as const
const C = { dialects: ['chat'] } as const
const R = { dialects: ['responses'] } as const
const without = <T>(list: readonly T[], at: number): T[] =>
  list.filter((_, i) => i !== (at < 0 ? list.length + at : at))
const inserted = (list: readonly string[], at: number, frame: string): string[] => [
  ...list.slice(0, at),
  frame,
  ...list.slice(at),
]
const errorFrame = (x: Exchange): string => {
  if (x.dialect === 'responses') return event('error', { code: 'server_error', message: 'busy', param: null })
  const said = JSON.parse(errorBody(x, 'overloaded_error', 'busy')) as object
  return x.dialect === 'messages' ? event('error', said) : data(said)
}
const failsBusy = (x: Exchange): Outcome => failover(x.dialect === 'messages' ? 'overloaded' : 'upstream_5xx')
/** The frame in which a choice or message says why it ended. */
const finishAt = (list: readonly string[]): number =>
  list.findIndex(frame => /"stop_reason":"|"finish_reason":"|^event: response\.completed/.test(frame))
/** Cut in the middle of the first character of several bytes. */
const inCodePoint = (list: readonly string[]): Uint8Array => {
  const bytes = Buffer.from(list.join(''))
  return bytes.subarray(0, bytes.indexOf(0xc3) + 1)
}
const multiline = (frame: string): string => frame.replace(/^data: \{(.*)\}$/m, 'data: {\ndata:$1\ndata: }')

/** Some hosts count on their client to have kept the items. */
const lastWithoutItems = (frame: string): string =>
  /^event: response\.completed/.test(frame)
    ? frame.replace(/"output":\[.*?\],"parallel/, '"output":[],"parallel')
    : frame
const FAILED = responseOf([], {
  status: 'failed',
  error: { code: 'server_error', message: 'The model failed.' },
  usage: null,
})

const sseFaults: Fault[] = [
  framed(
    'cut before the end',
    list => list.slice(0, -1),
    x => (x.dialect === 'chat' ? served : bad),
  ),
  framed('cut before the finish', list => list.slice(0, finishAt(list)), bad),
  framed('cut in the middle of a frame', list => [list.slice(0, 3).join('') + list[3]!.slice(0, 30)], bad),
  framed('cut in the middle of a code point', list => [inCodePoint(list)], bad),
  framed('cut without the last blank line', list => [list.join('').slice(0, -1)], bad),
  framed(
    'a finish of null',
    list => list.map(frame => frame.replace(/"(stop|finish)_reason":"\w+"/, '"$1_reason":null')),
    bad,
    { dialects: ['messages', 'chat'] },
  ),
  framed(
    'the first frame twice',
    list => [list[0]!, ...list],
    x => (x.dialect === 'messages' ? bad : served),
  ),
  framed('a piece of text twice', list => inserted(list, 3, list[2]!), served),
  framed(
    'every frame twice',
    list => list.flatMap(frame => [frame, frame]),
    x => (x.dialect === 'chat' ? served : bad),
  ),
  framed(
    'the finish before the text',
    list => [list[0]!, list[finishAt(list)]!, ...without(list, finishAt(list)).slice(1)],
    x => (x.dialect === 'responses' ? bad : served),
  ),
  framed('a piece before its block', list => [list[0]!, list[2]!, list[1]!, ...list.slice(3)], bad, M),
  framed('no event lines', list => list.map(frame => frame.replace(/^event: .*\n/, '')), served, M),
  framed(
    'event lines of another name',
    list => list.map(frame => frame.replace(/^event: .*\n/, 'event: message\n')),
    bad,
    M,
  ),
  framed('no event lines at all', list => list.map(frame => frame.replace(/^event: .*\n/, '')), served, R),
  framed(
    'a text that its end does not confirm',
    list => list.map(frame => frame.replace('"delta":"G', '"delta":"g')),
    served,
    R,
  ),
  framed('no items in the last event', list => list.map(lastWithoutItems), served, R),
  framed(
    'a response that failed',
    (list, _) => [...list.slice(0, 5), event('response.failed', { response: FAILED })],
    failover('upstream_5xx'),
    R,
  ),
  framed('event lines where none belong', list => list.map(frame => `event: chunk\n${frame}`), served, C),
  framed(
    'an event nobody knows',
    (list, x) =>
      inserted(list, 2, x.dialect === 'messages' ? event('news', { a: 1 }) : data({ object: 'news', choices: [] })),
    served,
    // The client of the Responses API throws at such an event, wherever it comes from.
    { dialects: ['messages', 'chat'] },
  ),
  framed('an event without a type', list => inserted(list, 2, data({ news: 1 })), served, R),
  framed(
    'a block nobody knows',
    () =>
      messageFrames(
        messageOf([
          { type: 'text', text: TEXT },
          { type: 'hologram', cubes: [1, 2] },
        ]) as Message,
      ),
    served,
    M,
  ),
  framed(
    'a delta nobody knows',
    list => inserted(list, 3, event('content_block_delta', { index: 0, delta: { type: 'mood_delta', mood: 'good' } })),
    served,
    M,
  ),
  framed(
    'members nobody knows',
    list =>
      list.map(frame =>
        frame.replace('"delta":{"', '"delta":{"mood":"good","').replace(/^data: \{/m, 'data: {"obfuscation":"xx",'),
      ),
    served,
  ),
  framed('CR line ends', list => [list.join('').replaceAll('\n', '\r')], served),
  framed('CRLF line ends', list => [list.join('').replaceAll('\n', '\r\n')], served),
  framed(
    'mixed line ends',
    list => list.map((frame, i) => frame.replaceAll('\n', ['\n', '\r', '\r\n'][i % 3]!)),
    served,
  ),
  framed('a byte order mark', list => [`\ufeff${list.join('')}`], served),
  framed(
    'comments, ids and retries',
    list => [': hello\n\n', ...list.map((frame, i) => `id: ${i}\nretry: 5\n: note\n${frame}`)],
    served,
  ),
  framed('data over several lines', list => list.map(multiline), served),
  framed('no space after the colon', list => list.map(frame => frame.replaceAll(/^(data|event): /gm, '$1:')), served),
  framed('single bytes', list => Array.from(Buffer.from(list.join('')), byte => Uint8Array.of(byte)), served, {
    heavy: true,
  }),
  framed('a frame of 8 MiB', (_, x) => framesOfSize(x, 8 * 1024 * 1024, 1), served, { heavy: true }),
  framed('10,000 tiny frames', (list, x) => tiny(list, x), served, { heavy: true }),
  framed('an error first', (list, x) => inserted(list, 0, errorFrame(x)), failsBusy),
  framed('an error in the middle', (list, x) => inserted(list, 3, errorFrame(x)), failsBusy),
  framed('an error at the end', (list, x) => [...list.slice(0, finishAt(list)), errorFrame(x)], failsBusy),
  framed('an error after the finish', (list, x) => [...list.slice(0, finishAt(list) + 1), errorFrame(x)], failsBusy),
  {
    ...framed('an error, then silence', (list, x) => inserted(list, 3, errorFrame(x)), failsBusy),
    wire: x => ({ ...sse(inserted(frames(x), 3, errorFrame(x))), end: 'stall' }),
  },
  framed(
    'a finish_reason of error',
    list => list.map(frame => frame.replace('"finish_reason":"stop"', '"finish_reason":"error"')),
    failover('upstream_5xx'),
    C,
  ),
  framed(
    'data after the end',
    list => [...list, list[2]!],
    x => (x.dialect === 'chat' ? served : bad),
  ),
  framed('a frame that is not JSON', list => inserted(list, 3, 'data: {"oops"\n\n'), bad),
  framed(
    'keep-alives before the first frame',
    (list, x) => [x.dialect === 'messages' ? event('ping', {}) : ': wait\n\n', ...list],
    served,
  ),
]

function tiny(list: readonly string[], { dialect }: Exchange): string[] {
  const at = list.findIndex(frame => FIRST_PIECE.test(frame))
  const piece =
    dialect === 'messages'
      ? list[at]!.replace(/"text":"[^"]*"/, '"text":"x"')
      : list[at]!.replace(/"(content|delta)":"[^"]*"/, '"$1":"x"')
  // A few writes: the frames are what is many here.
  return [...list.slice(0, at), ...Array.from({ length: 10 }, () => piece.repeat(1000)), ...list.slice(at)]
}

const tool = (id: string, input: unknown, text = JSON.stringify(input)) => ({
  block: { type: 'tool_use', id: `toolu_${id}`, name: 'look', input },
  call: { id: `call_${id}`, type: 'function', function: { name: 'look', arguments: text } },
})
const said = { type: 'text', text: TEXT }
const means = (name: string, wire: Fault['wire'], outcome: Fault['outcome'], more: Partial<Fault> = {}): Fault => ({
  name,
  group: 'semantics',
  wire,
  outcome,
  ...more,
})
const usageOf = (x: Exchange, usage: Json | undefined): Wire =>
  answered(x, [said], [{ content: TEXT }], { message: { usage }, completion: { usage } })

const semantics: Fault[] = [
  means('a plain answer', whole, served),
  means('empty text', x => answered(x, [{ type: 'text', text: '' }], [{ content: '' }]), escalation),
  means('no content at all', x => answered(x, [], [{ content: null }]), escalation),
  means(
    'only a tool call',
    x => answered(x, [tool('a', { q: 1 }).block], [{ tool_calls: [tool('a', { q: 1 }).call] }]),
    served,
  ),
  means(
    'two tool calls',
    x =>
      answered(
        x,
        [tool('a', { q: 1 }).block, tool('b', { q: '世' }).block],
        [{ tool_calls: [tool('a', { q: 1 }).call, tool('b', { q: '世' }).call] }],
      ),
    served,
  ),
  means(
    'a call without arguments',
    x => answered(x, [tool('a', {}).block], [{ tool_calls: [tool('a', {}, '').call] }]),
    served,
  ),
  means(
    'arguments that are no JSON',
    x => answered(x, [tool('a', '{"q":').block], [{ tool_calls: [tool('a', 0, '{"q":').call] }]),
    x => (x.dialect === 'messages' ? bad : served),
  ),
  means(
    'gaps in the indexes of calls',
    x => answered(x, [], [{ tool_calls: [tool('a', { q: 1 }).call, { ...tool('b', { q: 2 }).call, index: 3 }] }]),
    served,
    C,
  ),
  means(
    'gaps in the indexes of blocks',
    () =>
      sse(messageFrames(messageOf([said, said]) as Message).map(frame => frame.replaceAll('"index":1', '"index":2'))),
    bad,
    M,
  ),
  means('blocks that overlap', () => overlapping(), bad, M),
  means('two choices', x => answered(x, [], [{ content: TEXT }, { content: 'second' }]), served, {
    ...C,
    request: { n: 2 },
  }),
  means('two choices, one of them empty', x => answered(x, [], [{ content: TEXT }, { content: '' }]), escalation, {
    ...C,
    request: { n: 2 },
  }),
  means('one choice of two', x => answered(x, [], [{ content: TEXT }]), served, { ...C, request: { n: 2 } }),
  means(
    'a refusal',
    x =>
      answered(x, [{ type: 'text', text: 'I will' }], [{ refusal: 'I will not.' }], {
        message: { stop_reason: 'refusal', stop_details: { type: 'refusal', category: null } },
      }),
    escalation,
  ),
  means('a content filter', x => answered(x, [], [{ content: 'I wi' }], { finish: 'content_filter' }), escalation, C),
  means('a paused turn', x => answered(x, [said], [], { message: { stop_reason: 'pause_turn' } }), served, M),
  means(
    'cut by the token limit',
    x => answered(x, [said], [{ content: TEXT }], { message: { stop_reason: 'max_tokens' }, finish: 'length' }),
    served,
  ),
  means(
    'a stop reason nobody knows',
    x => answered(x, [said], [{ content: TEXT }], { message: { stop_reason: 'sleepy' }, finish: 'sleepy' }),
    served,
  ),
  means('no usage', x => usageOf(x, undefined), served),
  means(
    'a usage of zeros',
    x => usageOf(x, { input_tokens: 0, output_tokens: 0, prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }),
    served,
  ),
  means('a usage that shrinks', x => (x.stream ? shrinking(x) : whole(x)), served),
  means(
    'usage on every chunk',
    () =>
      sse(
        frames({ dialect: 'chat', stream: true }).map(frame =>
          frame.replace('"usage":null', '"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}'),
        ),
      ),
    served,
    C,
  ),
  means(
    'a usage of nonsense',
    x =>
      usageOf(x, {
        input_tokens: -5,
        output_tokens: 'many',
        prompt_tokens: 1.5,
        completion_tokens: null,
        total_tokens: 1e300,
      }),
    served,
  ),
  means(
    'cache classes',
    x =>
      usageOf(x, {
        input_tokens: 100,
        cache_creation_input_tokens: 3000,
        cache_read_input_tokens: 10_000,
        cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 2000 },
        output_tokens: 50,
        prompt_tokens: 1200,
        completion_tokens: 50,
        total_tokens: 1250,
        prompt_tokens_details: { cached_tokens: 1000 },
      }),
    served,
  ),
  means(
    'another model name',
    x =>
      answered(x, [said], [{ content: TEXT }], { message: { model: 'a-cousin' }, completion: { model: 'a-cousin' } }),
    served,
  ),
  means(
    'chunks without choices',
    x =>
      x.stream
        ? sse(
            inserted(
              frames(x),
              0,
              data({
                id: 'x',
                object: 'chat.completion.chunk',
                created: 1,
                model: 'm',
                choices: [],
                prompt_filter_results: [],
              }),
            ),
          )
        : whole(x),
    served,
    C,
  ),
  means('no choices', x => answered(x, [], []), bad, C),
  means(
    'thinking',
    x =>
      answered(
        x,
        [{ type: 'thinking', thinking: 'hm…', signature: 'c2ln' }, said],
        [{ content: TEXT, reasoning_content: 'hm…' }],
      ),
    served,
  ),
  means('redacted thinking', x => answered(x, [{ type: 'redacted_thinking', data: 'opaque' }, said], []), served, M),
  means(
    'only thinking',
    x => answered(x, [{ type: 'thinking', thinking: 'hm…', signature: 'c2ln' }], [{ reasoning_content: 'hm…' }]),
    escalation,
  ),
  means(
    'log probabilities',
    x =>
      answered(
        x,
        [],
        [
          {
            content: TEXT,
            logprobs: { content: [{ token: TEXT, logprob: -0.1, bytes: null, top_logprobs: [] }], refusal: null },
          },
        ],
      ),
    served,
    { ...C, request: { logprobs: true } },
  ),
]

function overlapping(): Wire {
  const [first, ...rest] = messageFrames(messageOf([said]) as Message)
  const [opened, ...others] = blockFrames(said, 1)
  return sse([first!, rest[0]!, opened!, ...rest.slice(1, -2), ...others, ...rest.slice(-2)])
}
function shrinking(x: Exchange): Wire {
  const list = frames(x)
  if (x.dialect === 'responses') return sse(list)
  if (x.dialect === 'chat') {
    return sse(
      inserted(
        list,
        list.length - 2,
        data({
          id: 'x',
          object: 'chat.completion.chunk',
          created: 1,
          model: 'm',
          choices: [],
          usage: { prompt_tokens: 9000, completion_tokens: 90, total_tokens: 9090 },
        }),
      ),
    )
  }
  return sse(
    inserted(
      list,
      list.length - 2,
      event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 90 } }),
    ),
  )
}

const late = (name: string, wire: Fault['wire'], outcome: Fault['outcome']): Fault => ({
  name,
  group: 'time',
  wire,
  outcome,
})
const timing: Fault[] = [
  late('the first byte just before the keep-alive', x => ({ ...whole(x), delay: TIMES.keepAlive - 200 }), served),
  late('the first byte just after the keep-alive', x => ({ ...whole(x), delay: TIMES.keepAlive + 300 }), served),
  late('a gap that is allowed', x => gap(x, TIMES.idle / 3), served),
  late('a gap that is not', x => ({ ...gap(x, TIMES.idle * 2), end: 'stall' }), failover('timeout')),
]
function gap(exchange: Exchange, ms: number): Wire {
  const wire = whole(exchange)
  const bytes = Buffer.from(wire.body.join(''))
  return { ...wire, body: [bytes.subarray(0, 120), ms, bytes.subarray(120)] }
}

export const FAULTS: readonly Fault[] = [...connect, ...statuses, ...bodies, ...sseFaults, ...semantics, ...timing]

/** The faults of a dialect, with their place in the list. */
export function faultsOf(dialect: DialectName): Fault[] {
  return FAULTS.filter(({ dialects }) => dialects === undefined || dialects.includes(dialect))
}

export function outcomeOf({ outcome }: Fault, exchange: Exchange): Outcome {
  return typeof outcome === 'function' ? outcome(exchange) : outcome
}
