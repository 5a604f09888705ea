import { readJson } from '../../shared/json/read-json.ts'
import { fromBase64, joined, utf8 } from '../../shared/sign/bytes.ts'

/** A message of the binary event stream that does not hold together; what follows it cannot be found any more. */
export class EventStreamError extends Error {
  override name = 'EventStreamError'
}

const PRELUDE = 12
const CHECKSUM = 4
/** The format's own limit, with room to spare. */
const MOST = 24 * 1024 * 1024

/** The frames of a messages stream that came as binary events (`application/vnd.amazon.eventstream`), as server-sent events. */
export async function* eventStreamToSse(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = []
  let size = 0
  /** As many bytes as the next message begins with, or has. */
  let wanted = PRELUDE
  for await (const chunk of body) {
    pieces.push(chunk)
    size += chunk.length
    if (size < wanted) continue
    let rest = pieces.length === 1 ? chunk : joined(pieces)
    wanted = PRELUDE
    const frames: Uint8Array[] = []
    while (rest.length >= PRELUDE) {
      const view = new DataView(rest.buffer, rest.byteOffset, rest.length)
      const length = view.getUint32(0)
      if (crc32(rest.subarray(0, 8)) !== view.getUint32(8)) throw new EventStreamError('a prelude has another checksum')
      if (length < PRELUDE + CHECKSUM || length > MOST) throw new EventStreamError(`a message of ${length} bytes`)
      if (rest.length < length) {
        wanted = length
        break
      }
      frames.push(frameOf(rest.subarray(0, length)))
      rest = rest.subarray(length)
    }
    pieces = rest.length > 0 ? [rest] : []
    size = rest.length
    if (frames.some(({ length }) => length > 0)) yield joined(frames)
  }
  if (size > 0) throw new EventStreamError('the stream ended inside a message')
}

function frameOf(message: Uint8Array): Uint8Array {
  const view = new DataView(message.buffer, message.byteOffset, message.length)
  const end = message.length - CHECKSUM
  if (crc32(message.subarray(0, end)) !== view.getUint32(end))
    throw new EventStreamError('a message has another checksum')
  const headersEnd = PRELUDE + view.getUint32(4)
  if (headersEnd > end) throw new EventStreamError('the headers are longer than their message')
  const headers = headersOf(message.subarray(PRELUDE, headersEnd))
  const payload = new TextDecoder().decode(message.subarray(headersEnd, end))
  const kind = headers.get(':message-type')
  if (kind === 'event') {
    // A kind of event that is not known says nothing of the answer.
    if ((headers.get(':event-type') ?? 'chunk') !== 'chunk') return new Uint8Array()
    return sse(new TextDecoder().decode(fromBase64(String(parsed(payload).bytes ?? ''))))
  }
  const name = headers.get(':exception-type') ?? headers.get(':error-code') ?? 'internalServerException'
  // What is no exception of the service's model says its words in a header, and has no payload.
  const told = (kind === 'error' ? undefined : parsed(payload).message) ?? headers.get(':error-message') ?? name
  return sse(JSON.stringify({ type: 'error', error: { type: ERRORS[name] ?? 'api_error', message: String(told) } }))
}

/** What the host calls its faults, in the dialect's words. */
const ERRORS: Readonly<Record<string, string>> = {
  throttlingException: 'rate_limit_error',
  serviceUnavailableException: 'overloaded_error',
  modelTimeoutException: 'timeout_error',
  validationException: 'invalid_request_error',
  accessDeniedException: 'permission_error',
}

function sse(data: string): Uint8Array {
  const type = parsed(data).type
  return utf8(`event: ${typeof type === 'string' ? type : 'message'}\ndata: ${data}\n\n`)
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = readJson(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // The sentence below says what is wrong with it.
  }
  throw new EventStreamError('a message holds no JSON object')
}

/** The width of a header's value by its type; strings and bytes carry their own. */
const WIDTH: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 }
const STRING = 7
const BYTES = 6

function headersOf(bytes: Uint8Array): Map<string, string> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const decoder = new TextDecoder()
  const headers = new Map<string, string>()
  try {
    for (let at = 0; at < bytes.length; ) {
      const nameEnd = at + 1 + view.getUint8(at)
      const name = decoder.decode(bytes.subarray(at + 1, nameEnd))
      const type = view.getUint8(nameEnd)
      at = nameEnd + 1
      if (type === STRING || type === BYTES) {
        const end = at + 2 + view.getUint16(at)
        if (type === STRING) headers.set(name, decoder.decode(bytes.subarray(at + 2, end)))
        at = end
      } else {
        const width = WIDTH[type]
        if (width === undefined) throw new EventStreamError(`a header of type ${type}`)
        at += width
      }
    }
  } catch (error) {
    if (error instanceof RangeError) throw new EventStreamError('a header is cut', { cause: error })
    throw error
  }
  return headers
}

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

/** CRC-32 as in IEEE 802.3. */
function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8)
  return (crc ^ 0xffffffff) >>> 0
}
