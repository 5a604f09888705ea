import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { loadConfig } from '../../router/config/load-config.ts'
import { sseReader } from '../../shared/http/sse-read.ts'
import { type Target, target } from './target.ts'

/** Bytes as JSON: one character for each. */
const toBytes = (text: string) => Uint8Array.from(text, one => one.charCodeAt(0))
const bytesText = (max: number) => fc.uint8Array({ maxLength: max }).map(bytes => String.fromCharCode(...bytes))

interface Stream {
  pieces: readonly string[]
  cuts: readonly number[]
  maxFrameBytes: number
}

function cut(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [...new Set(cuts.map(place => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...places].map((start, at) => bytes.slice(start, places[at] ?? bytes.length))
}

const framesOf = (chunks: readonly Uint8Array[], maxFrameBytes: number) => {
  const reader = sseReader({ maxFrameBytes })
  const frames = chunks.flatMap(chunk => reader.push(chunk))
  return { frames, tooLarge: reader.tooLarge, rest: reader.rest().bytes }
}

/** Any bytes, cut anywhere: nothing is lost, nothing depends on the cuts, and another parser says the same. */
function readStream({ pieces, cuts, maxFrameBytes }: Stream): void {
  const bytes = toBytes(pieces.join(''))
  const chunks = cut(bytes, cuts)
  const whole = framesOf([bytes], maxFrameBytes)
  const read = framesOf(chunks, maxFrameBytes)
  const tell = ({ frames }: typeof whole) =>
    JSON.stringify(frames.map(({ event, data, badUtf8 }) => [event, data, badUtf8]))
  if (tell(whole) !== tell(read)) throw new Error(`cut up it says ${tell(read)}, and whole ${tell(whole)}`)
  if (read.tooLarge) return
  const kept = [...read.frames.map(({ raw }) => raw), read.rest].map(one => String.fromCharCode(...one)).join('')
  if (kept !== pieces.join('')) throw new Error('the frames and the rest are not the stream')
  const other: [string | undefined, string][] = []
  const parser = createParser({ onEvent: ({ event, data }) => other.push([event, data]) })
  parser.feed(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes))
  const ours = read.frames.flatMap(({ event, data }) => (data === undefined ? [] : [[event, data]]))
  if (JSON.stringify(ours) !== JSON.stringify(other)) {
    throw new Error(`eventsource-parser says ${JSON.stringify(other)}, and ours ${JSON.stringify(ours)}`)
  }
}

const piece = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('\n', '\r', '\r\n', '\n\n') },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      'data:',
      'data',
      'event:',
      'id:',
      ':',
      'retry: 1',
      'data: {"a":1}',
      ' ',
      '\u00ef\u00bb\u00bf',
    ),
  },
  { weight: 2, arbitrary: bytesText(6) },
)

const GOOD = `version = 1
price = [{ model = "mock/cheap", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "mock", dialect = "messages", base_url = "https://a.example", auth = "none" }]
[[route]]
match = { model = "auto", agent = "claude-*" }
mode = "enforce"
ladder = ["mock/cheap", "anthropic/claude-haiku-4-5"]
gates = ["non-empty"]
budget = { per_request_usd = 0.50, per_day_usd = 20 }
[[gate]]
id = "long"
kind = "length"
min_chars = 3
[limits]
max_inflight = 200
[calibration]
alpha = 0.1
`
const WORDS = [
  ...[
    '[',
    ']',
    '[[',
    ']]',
    '=',
    '"',
    "'",
    '"""',
    '{',
    '}',
    ',',
    '.',
    '#',
    '\n',
    '\r',
    '\0',
    '-',
    '1e999',
    'nan',
    'inf',
    '9'.repeat(30),
  ],
  ...[
    'route',
    'gate',
    'provider',
    '__proto__',
    'constructor',
    'toString',
    'mode',
    'ladder',
    'kind = "regex"',
    'pattern = "(a+)+$"',
  ],
  ...[
    '1979-05-27',
    'true',
    '[]',
    '{}',
    '\ud800',
    '\ufeff',
    '[route.match]',
    '[[route]]\n',
    'schema = { type = "object" }',
  ],
]

interface Edit {
  at: number
  drop: number
  put: string
}

function edited(text: string, edits: readonly Edit[]): string {
  let now = text
  for (const { at, drop, put } of edits) {
    const place = at % (now.length + 1)
    now = now.slice(0, place) + put + now.slice(place + drop)
  }
  return now
}

/** Prices are whole numbers of any size, which JSON has no word for. */
const inWords = (config: object) =>
  JSON.stringify(config, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))

/** Whatever the text: a config, or problems that say where and what; the same twice. */
function readConfig(edits: readonly Edit[]): void {
  const text = edited(GOOD, edits)
  const read = () => loadConfig(text, { hostHasProcesses: true, env: {}, readFile: () => '{"type":"object"}' })
  const [one, other] = [read(), read()]
  if (one.ok !== other.ok) throw new Error('read twice it is not the same')
  if (one.ok) {
    if (other.ok && inWords(one.config) !== inWords(other.config)) throw new Error('two configs of one text')
    return
  }
  if (one.problems.length === 0) throw new Error('refused without a problem')
  const lines = text.split('\n').length
  for (const { message, line, column } of one.problems) {
    if (message.length < 5 || message.includes('undefined')) throw new Error(`no sentence: ${message}`)
    if ((line ?? 1) < 1 || (line ?? 1) > lines || (column ?? 1) < 1) throw new Error(`no place: ${line}:${column}`)
  }
}

export const texts: Target[] = [
  target<Stream>({
    name: 'sse',
    cases: fc.record({
      pieces: fc.array(piece, { maxLength: 40 }),
      cuts: fc.array(fc.nat(300), { maxLength: 12 }),
      maxFrameBytes: fc.constantFrom(1 << 20, 64, 16),
    }),
    attempt: readStream,
  }),
  target<readonly Edit[]>({
    name: 'toml',
    cases: fc.array(
      fc.record({
        at: fc.nat(1000),
        drop: fc.oneof(fc.constant(0), fc.nat(4), fc.nat(120)),
        put: fc.oneof(fc.constantFrom(...WORDS), fc.string({ maxLength: 8 }), fc.constant('')),
      }),
      { minLength: 1, maxLength: 8 },
    ),
    attempt: readConfig,
  }),
]
