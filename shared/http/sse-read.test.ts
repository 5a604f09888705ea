import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SseFrame } from './sse-read.ts'
import { sseReader } from './sse-read.ts'

const encoder = new TextEncoder()
const LIMIT = { maxFrameBytes: 1 << 26 }

function cut(bytes: Uint8Array, points: readonly number[]): Uint8Array[] {
  const places = [...new Set(points.map(p => p % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...places].map((start, i) => bytes.slice(start, places[i] ?? bytes.length))
}

function readAll(
  chunks: readonly Uint8Array[],
  options = LIMIT,
): { frames: SseFrame[]; rest: Uint8Array; incomplete: boolean } {
  const reader = sseReader(options)
  const frames = chunks.flatMap(chunk => reader.push(chunk))
  const { bytes, incomplete } = reader.rest()
  return { frames, rest: bytes, incomplete }
}

function oracle(chunks: readonly Uint8Array[]): { event: string | undefined; data: string }[] {
  const seen: { event: string | undefined; data: string }[] = []
  const parser = createParser({ onEvent: ({ event, data }) => seen.push({ event, data }) })
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  for (const chunk of chunks) parser.feed(decoder.decode(chunk, { stream: true }))
  return seen
}

const told = (frames: readonly SseFrame[]) =>
  frames.flatMap(({ event, data }) => (data === undefined ? [] : [{ event, data }]))

const join = (parts: readonly Uint8Array[]) => Uint8Array.from(Buffer.concat(parts))

const lineEnd = fc.constantFrom('\n', '\r', '\r\n')
const words = fc.string({ unit: fc.constantFrom('a', ' ', ':', '{', 'é', '漢', '😀', '\u2028', 'data'), maxLength: 12 })
const line = fc.oneof(
  { weight: 4, arbitrary: words.map(text => `data:${text}`) },
  { weight: 3, arbitrary: words.map(text => `event: ${text}`) },
  words.map(text => `: ${text}`),
  words.map(text => `id: ${text}`),
  fc.constantFrom('data', 'event', 'data:', 'dat:x', 'datas: y', 'retry: 5', 'event:', 'Data: z', 'xevent: q'),
  { weight: 4, arbitrary: fc.constant('') },
)
const stream = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(line, lineEnd), { maxLength: 30 }), words)
  .map(([bom, lines, tail]) =>
    encoder.encode((bom ? '\ufeff' : '') + lines.map(([text, end]) => text + end).join('') + tail),
  )
const cuts = fc.array(fc.nat(2000), { maxLength: 20 })

describe('sseReader', () => {
  it('says what eventsource-parser says, whatever the line endings and wherever the stream is cut', () => {
    fc.assert(
      fc.property(stream, cuts, (bytes, points) => {
        const chunks = cut(bytes, points)
        expect(told(readAll(chunks).frames)).toEqual(oracle(chunks))
      }),
      { numRuns: 2000 },
    )
  })

  it('gives out every byte exactly once and in order', () => {
    fc.assert(
      fc.property(stream, cuts, (bytes, points) => {
        const { frames, rest } = readAll(cut(bytes, points))
        expect(join([...frames.map(frame => frame.raw), rest])).toEqual(bytes)
      }),
      { numRuns: 500 },
    )
  })

  it('gives the same frames byte by byte as in one piece', () => {
    fc.assert(
      fc.property(stream, bytes => {
        const single = readAll(Array.from(bytes, b => Uint8Array.of(b)))
        expect(single).toEqual(readAll([bytes]))
      }),
      { numRuns: 300 },
    )
  })

  it('keeps the bytes of a frame when the buffer behind it is used again', () => {
    const reader = sseReader(LIMIT)
    reader.push(encoder.encode('data: on'))
    const [first] = reader.push(encoder.encode('e\n\ndata: tw'))
    reader.push(encoder.encode('o\n\n'))
    expect(new TextDecoder().decode(first?.raw)).toBe('data: one\n\n')
  })

  it('gives a frame out at a carriage return without waiting for the next chunk', () => {
    const reader = sseReader(LIMIT)
    expect(told(reader.push(encoder.encode('data: a\r\n\r')))).toEqual([{ event: undefined, data: 'a' }])
    expect(told(reader.push(encoder.encode('\ndata: b\r\r')))).toEqual([{ event: undefined, data: 'b' }])
  })

  it('calls a stream incomplete that ends before the blank line of its last frame', () => {
    expect(readAll([encoder.encode('data: a\n\n')]).incomplete).toBe(false)
    expect(readAll([encoder.encode('data: a\n\ndata: b\n')]).incomplete).toBe(true)
    expect(readAll([encoder.encode('data: a\n\ndat')]).incomplete).toBe(true)
    expect(readAll([encoder.encode('data: a\n\n: bye')]).incomplete).toBe(false)
    expect(readAll([encoder.encode('data: a\n\n\n\r\n')]).incomplete).toBe(false)
  })

  it('marks data that is not UTF-8 and puts it together across any cut', () => {
    const good = encoder.encode('data: 漢😀\n\n')
    for (let i = 0; i <= good.length; i += 1) {
      expect(readAll([good.slice(0, i), good.slice(i)]).frames).toMatchObject([{ data: '漢😀', badUtf8: false }])
    }
    const bad = Uint8Array.from([...encoder.encode('data: '), 0xe6, 0xbc, 0x0a, 0x0a])
    expect(readAll([bad]).frames).toMatchObject([{ data: '\ufffd', badUtf8: true }])
  })

  it('stops at a frame beyond its limit, finished or not, however it is cut', () => {
    const bytes = encoder.encode('data: small\n\ndata: 0123456789\n\ndata: later\n\n')
    fc.assert(
      fc.property(cuts, points => {
        const reader = sseReader({ maxFrameBytes: 16 })
        const frames = cut(bytes, points).flatMap(chunk => reader.push(chunk))
        expect(told(frames)).toEqual([{ event: undefined, data: 'small' }])
        expect(reader.tooLarge).toBe(true)
        expect(reader.rest().incomplete).toBe(true)
      }),
    )
  })

  it('stops at a frame of lines without an end', () => {
    const reader = sseReader(LIMIT)
    const piece = encoder.encode('data:\n'.repeat(10_000))
    let pieces = 0
    while (!reader.tooLarge && pieces < 100) {
      reader.push(piece)
      pieces++
    }
    expect(pieces).toBe(26)
  })

  it('reads a frame of many mebibytes in small pieces in linear time', () => {
    const size = 16 << 20
    const piece = encoder.encode('x'.repeat(1024))
    const reader = sseReader(LIMIT)
    const started = performance.now()
    reader.push(encoder.encode('data: '))
    for (let sent = 0; sent < size; sent += piece.length) expect(reader.push(piece).length).toBe(0)
    const frames = reader.push(encoder.encode('\n\n'))
    expect(frames[0]?.data?.length).toBe(size)
    // Copying the frame for every piece would move 128 GiB; this bound is two orders above what the linear way takes.
    expect(performance.now() - started).toBeLessThan(8000)
  })
})
