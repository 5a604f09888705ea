import type { SseFrame } from '../../http/sse-read.ts'
import { readJson } from '../../json/read-json.ts'
import { cutsOf, withoutSpans } from '../json-cut.ts'
import { eachMember, keyTable, readSpan, wholeObject } from '../json-members.ts'
import type { Span } from '../json-scan.ts'
import { spanText } from '../json-scan.ts'
import type { Json } from '../json-value.ts'
import { isArray, isObject, tryParse } from '../json-value.ts'
import { sseText } from '../sse-frame.ts'

const OPTIONS = keyTable(['stream_options'])
const USAGE = keyTable(['usage'])
const WANTED = '{"include_usage":true}'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** The body of a streamed chat request that also asks for usage; nothing outside of `stream_options` changes. */
export function askForUsage(body: Uint8Array): Uint8Array {
  let open = 0
  let found: Span | undefined
  wholeObject(body, c => {
    open = c.at
    eachMember(c, OPTIONS, key => {
      if (key === 'stream_options') found = readSpan(c)
    })
  })
  if (found === undefined) return spliced(body, { start: open + 1, end: open + 1 }, `"stream_options":${WANTED},`)
  const given = readJson(spanText(body, found)) as Json
  if (given === null) return spliced(body, found, WANTED)
  // Options that are none are the upstream's to refuse.
  return isObject(given) ? spliced(body, found, JSON.stringify({ ...given, include_usage: true })) : body
}

/** A frame as it would have come without asking for usage; undefined for the one that came only because of it. */
export function withoutUsage({ raw, event, data, badUtf8 }: SseFrame): Uint8Array | undefined {
  if (data === undefined || badUtf8) return raw
  const chunk = tryParse(data)
  if (!isObject(chunk) || chunk.usage === undefined) return raw
  if (isObject(chunk.usage) && (!isArray(chunk.choices) || chunk.choices.length === 0)) return undefined
  const text = decoder.decode(withoutMembers(encoder.encode(data)))
  const whole = decoder.decode(raw)
  return whole.includes(data) ? encoder.encode(whole.replace(data, () => text)) : sseText(event, text)
}

function withoutMembers(object: Uint8Array): Uint8Array {
  const members: { start: number; end: number; drop: boolean }[] = []
  wholeObject(object, c =>
    eachMember(c, USAGE, (key, start) => {
      const { end } = readSpan(c)
      members.push({ start, end, drop: key === 'usage' })
    }),
  )
  return withoutSpans(object, cutsOf(members))
}

function spliced(body: Uint8Array, { start, end }: Span, text: string): Uint8Array {
  const insert = encoder.encode(text)
  const out = new Uint8Array(body.length - (end - start) + insert.length)
  out.set(body.subarray(0, start))
  out.set(insert, start)
  out.set(body.subarray(end), start + insert.length)
  return out
}
