import { Readable } from 'node:stream'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { joined, toBase64, utf8 } from '../../shared/sign/bytes.ts'
import { expectWithin } from '../../tests/crowding.ts'
import { eventStreamToSse } from './event-stream.ts'

/** An event as the host writes it: lengths and a checksum, headers, payload, a checksum of all. */
const message = (data: object): Uint8Array =>
  written({ ':message-type': 'event' }, JSON.stringify({ bytes: toBase64(utf8(JSON.stringify(data))) }))

function written(named: Record<string, string>, text: string): Uint8Array {
  const headers = joined(
    Object.entries(named).flatMap(([name, value]) => [
      ...[Uint8Array.of(name.length), utf8(name), Uint8Array.of(7, 0, value.length), utf8(value)],
    ]),
  )
  const payload = utf8(text)
  const bytes = new Uint8Array(12 + headers.length + payload.length + 4)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, bytes.length)
  view.setUint32(4, headers.length)
  view.setUint32(8, crc32(bytes.subarray(0, 8)))
  bytes.set(headers, 12)
  bytes.set(payload, 12 + headers.length)
  view.setUint32(bytes.length - 4, crc32(bytes.subarray(0, -4)))
  return bytes
}

async function read(pieces: Iterable<Uint8Array>): Promise<string> {
  const found: Uint8Array[] = []
  for await (const frames of eventStreamToSse(Readable.from(pieces) as AsyncIterable<Uint8Array>)) found.push(frames)
  return new TextDecoder().decode(joined(found))
}

const events = [
  { type: 'message_start' },
  { type: 'ping' },
  { type: 'content_block_delta', index: 0, text: 'x'.repeat(300) },
]
const stream = joined(events.map(message))
const frames = events.map(one => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join('')

it('reads the same events however the bytes are cut', async () => {
  const points = fc.array(fc.nat(stream.length), { maxLength: 40 }).map(list => list.toSorted((a, b) => a - b))
  await fc.assert(
    fc.asyncProperty(points, async list => {
      const pieces = [...list, stream.length].map((end, i) => stream.subarray(list[i - 1] ?? 0, end))
      expect(await read(pieces)).toBe(frames)
    }),
  )
  await expect(read([stream.subarray(0, -1)])).rejects.toThrow('inside a message')
})

it('reads a message of many megabytes that comes in small pieces in linear time', async () => {
  const whole = message({ type: 'content_block_delta', text: 'x'.repeat(8 << 20) })
  const pieces = Array.from({ length: Math.ceil(whole.length / 1024) }, (_, n) =>
    whole.subarray(n * 1024, n * 1024 + 1024),
  )
  const started = performance.now()
  expect((await read(pieces)).length).toBeGreaterThan(8 << 20)
  // To copy what came for every piece would move 80 GB.
  expectWithin(performance.now() - started, 5000)
})

it.each<[string, Record<string, string>, string, object]>([
  [
    'an exception',
    { ':message-type': 'exception', ':exception-type': 'throttlingException' },
    '{"message":"slow down"}',
    { type: 'rate_limit_error', message: 'slow down' },
  ],
  [
    'an error, which has no payload',
    { ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'it broke' },
    '',
    { type: 'api_error', message: 'it broke' },
  ],
])('says what went wrong by %s', async (_what, headers, payload, error) => {
  const data = JSON.stringify({ type: 'error', error })
  expect(await read([written(headers, payload)])).toBe(`event: error\ndata: ${data}\n\n`)
})

it('passes over an event of a kind that is not known', async () => {
  const other = written({ ':message-type': 'event', ':event-type': 'metadata' }, '{}')
  expect(await read([other, stream])).toBe(frames)
})
