import { atArray, atObject } from './json-members.ts'
import type { Cursor } from './json-scan.ts'
import { cursor, JsonSyntaxError, skipSpace, skipValue, spanText } from './json-scan.ts'
import type { Json, JsonObject } from './json-value.ts'
import { tryParse } from './json-value.ts'

/**
 * The text each parsed object and array was read from. Writing such a value gives that text back, so what is only passed
 * along keeps its number spelling, its escapes and its spaces: parsed values are never changed in place.
 */
const sources = new WeakMap<object, { bytes: Uint8Array; start: number; end: number } | string>()

/** Values nested deeper than this are refused: this reader calls itself for each level. */
const MAX_TREE_DEPTH = 500

const encoder = new TextEncoder()

/** Parses a whole body and remembers the text of every object and array in it; throws JsonSyntaxError. */
export function parseJson(body: Uint8Array | string): Json {
  const bytes = typeof body === 'string' ? encoder.encode(body) : body
  const c = cursor(bytes)
  skipSpace(c)
  const value = readValue(c, 0)
  skipSpace(c)
  if (c.at !== bytes.length) throw new JsonSyntaxError('nothing more', c.at)
  return value
}

/** Like parseJson, undefined for a body that is not JSON. */
export function tryParseJson(body: Uint8Array | string): Json | undefined {
  try {
    return parseJson(body)
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined
    throw error
  }
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The same value where nobody will ask for the text of its parts: by the reader of the engine, which takes a tenth of the time, unless
 * there are so many brackets that their depth has to be looked at.
 */
export function tryParsePlain(body: Uint8Array): Json | undefined {
  let text: string
  try {
    text = strict.decode(body)
  } catch {
    return undefined
  }
  return mayBeDeep(text) ? tryParseJson(body) : tryParse(text)
}

function mayBeDeep(text: string): boolean {
  let open = 0
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) open += 1
    if (open > MAX_TREE_DEPTH) return true
  }
  return false
}

/** The text is the beginning of a JSON text and nothing else is wrong with it. */
export function isCutJson(text: string): boolean {
  const bytes = encoder.encode(text)
  try {
    parseJson(bytes)
    return false
  } catch (error) {
    return error instanceof JsonSyntaxError && error.at >= bytes.length
  }
}

function readValue(c: Cursor, depth: number): Json {
  if (depth > MAX_TREE_DEPTH) throw new JsonSyntaxError(`at most ${MAX_TREE_DEPTH} levels of nesting`, c.at)
  const start = c.at
  if (!atObject(c) && !atArray(c)) {
    skipValue(c)
    // The scanner has accepted the literal, so it is one of the scalars of Json.
    return JSON.parse(spanText(c.bytes, { start, end: c.at })) as Json
  }
  const value = atObject(c) ? readObject(c, depth) : readArray(c, depth)
  sources.set(value, { bytes: c.bytes, start, end: c.at })
  return value
}

function readObject(c: Cursor, depth: number): JsonObject {
  const object: { [key: string]: Json } = {}
  c.at += 1
  for (let first = true; ; first = false) {
    skipSpace(c)
    if (first && c.bytes[c.at] === 0x7d) break
    const key = readValue(c, depth + 1)
    if (typeof key !== 'string') throw new JsonSyntaxError('a string key', c.at)
    skipSpace(c)
    if (c.bytes[c.at] !== 0x3a) throw new JsonSyntaxError('a colon', c.at)
    c.at += 1
    skipSpace(c)
    const value = readValue(c, depth + 1)
    // An assignment to __proto__ would set the prototype instead of a member.
    if (key === '__proto__')
      Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
    else object[key] = value
    skipSpace(c)
    if (c.bytes[c.at] === 0x7d) break
    if (c.bytes[c.at] !== 0x2c) throw new JsonSyntaxError('a comma or }', c.at)
    c.at += 1
  }
  c.at += 1
  return object
}

function readArray(c: Cursor, depth: number): Json[] {
  const items: Json[] = []
  c.at += 1
  for (let first = true; ; first = false) {
    skipSpace(c)
    if (first && c.bytes[c.at] === 0x5d) break
    items.push(readValue(c, depth + 1))
    skipSpace(c)
    if (c.bytes[c.at] === 0x5d) break
    if (c.bytes[c.at] !== 0x2c) throw new JsonSyntaxError('a comma or ]', c.at)
    c.at += 1
  }
  c.at += 1
  return items
}

/** A value that is written as the given JSON text; the text must be JSON. */
export function verbatim(text: string): JsonObject {
  const value: JsonObject = {}
  sources.set(value, text)
  return value
}

/** JSON text of a value, with the original text for every part that came from parseJson. */
export function writeJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const source = sources.get(value)
  if (source !== undefined) return typeof source === 'string' ? source : spanText(source.bytes, source)
  if (Array.isArray(value)) return `[${value.map(item => writeJson(item)).join(',')}]`
  const members: string[] = []
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${writeJson(member)}`)
  }
  return `{${members.join(',')}}`
}

export function jsonBytes(value: Json): Uint8Array {
  return encoder.encode(writeJson(value))
}
