import { space, writeString } from '../../shared/dialects/testing/spelling.ts'

/** A request body as text, cut around the literal that the splice has to find. */
export interface SpelledBody {
  before: string
  /** The last top-level `model`, as it is spelled. */
  literal: string
  after: string
}

export type Draw = () => number

/** Numbers below a million, the same for the same seed (xorshift32). */
export function draws(seed: number): Draw {
  let state = seed | 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % 1_000_000
  }
}

const KEYS = [
  'messages',
  'max_tokens',
  'temperature',
  'stream',
  'tools',
  'system',
  'metadata',
  'Model',
  'models',
  'mode',
  'model ',
  '',
  'é',
  '"model":"x"',
  '\\',
  '__proto__',
  'constructor',
  'x-new',
]
const NUMBERS = [
  '0',
  '-0',
  '1.0',
  '1e3',
  '1E+2',
  '-1.50',
  '0.1e-7',
  '12345678901234567890123456789',
  '1e400',
  '-9007199254740993',
  '3.141592653589793238',
]
const TEXTS = [
  '',
  'a',
  'model',
  '"model":"gpt"',
  '\\"',
  '{"model":"inner"}',
  '漢字',
  '😀',
  '\ud800',
  '\u2028',
  '\0\b\f\n\r\t',
  'é\u0301',
  '/',
  'x'.repeat(70),
  '\u007f\u0080',
  ']}',
  '//',
  ': "m"',
]

const pick = <T>(list: readonly T[], draw: Draw): T => list[draw() % list.length]!

/** Any value, with the words that could be taken for the top-level member anywhere inside it. */
function value(draw: Draw, depth: number): string {
  const kind = draw() % (depth > 0 ? 10 : 7)
  if (kind < 2) return pick(NUMBERS, draw)
  if (kind < 3) return pick(['true', 'false', 'null'], draw)
  if (kind < 7) return writeString(pick(TEXTS, draw), draw)
  const items = Array.from(
    { length: draw() % 4 },
    () => space(draw) + (kind < 8 ? value(draw, depth - 1) : member(draw, depth - 1)) + space(draw),
  )
  return kind < 8 ? `[${items.join(',') || space(draw)}]` : `{${items.join(',') || space(draw)}}`
}

/** Inside a value any key may be `model`. */
function member(draw: Draw, depth: number, key = draw() % 3 === 0 ? 'model' : pick(KEYS, draw)): string {
  return `${writeString(key, draw)}${space(draw)}:${space(draw)}${value(draw, depth)}`
}

/** A body in any spelling that JSON allows: repeated keys, needless escapes, white space, numbers of any form. */
export function spelledBody(draw: Draw): SpelledBody {
  const top = (length: number, model: boolean) =>
    Array.from(
      { length },
      () => space(draw) + member(draw, 3, model && draw() % 4 === 0 ? 'model' : pick(KEYS, draw)) + space(draw),
    )
  const ahead = top(draw() % 5, true)
  const behind = top(draw() % 5, false)
  const key = `${space(draw)}${writeString('model', draw)}${space(draw)}:${space(draw)}`
  const literal = writeString(pick([...TEXTS, 'claude-haiku-4-5', 'gpt-4.1', 'auto'], draw), draw)
  return {
    before: `${space(draw)}{${ahead.map(one => `${one},`).join('')}${key}`,
    literal,
    after: `${space(draw)}${behind.map(one => `,${one}`).join('')}}${space(draw)}`,
  }
}
