import type { MeterReading, PassingDialect } from '../../shared/dialects/dialect.ts'
import { sseReader } from '../../shared/http/sse-read.ts'
import { joined } from '../../shared/sign/bytes.ts'
import { decoderOf, headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'

/** Of a stream: the largest unfinished frame that is held. */
const MAX_FRAME = 1024 * 1024
/** Of an answer that is not a stream: the most that is kept to read its usage at the end. */
const MAX_JSON = 4 * 1024 * 1024

/** Of a compressed answer: a megabyte of it may hold a gigabyte, which no client has asked for. */
const MAX_DECODED = 64 * 1024 * 1024

export interface AnswerMeter {
  push(chunk: Uint8Array): void
  /** What the answer said about itself; undefined when it could not be read. A promise only where the answer has to be decoded first. */
  reading(): MeterReading | undefined | Promise<MeterReading | undefined>
}

/** A reader beside the relay: it sees each chunk after it went out, and can neither change nor fail it. */
export function answerMeter(dialect: PassingDialect, headers: HeaderList, rawEncoding: boolean): AnswerMeter {
  const type = headerValue(headers, 'content-type') ?? ''
  const encoding = rawEncoding ? (headerValue(headers, 'content-encoding') ?? 'identity') : 'identity'
  const plain = /^text\/event-stream/i.test(type) ? streamMeter(dialect) : jsonMeter(dialect)
  return encoding === 'identity' ? plain : decodedMeter(plain, encoding)
}

function streamMeter(dialect: PassingDialect): AnswerMeter {
  const reader = sseReader({ maxFrameBytes: MAX_FRAME })
  const meter = dialect.meter()
  return {
    push(chunk) {
      for (const frame of reader.push(chunk)) meter.push(frame)
    },
    reading: () => (reader.tooLarge ? undefined : meter.reading()),
  }
}

function jsonMeter(dialect: PassingDialect): AnswerMeter {
  let chunks: Uint8Array[] = []
  let size = 0
  return {
    push(chunk) {
      size += chunk.length
      if (size > MAX_JSON) chunks = []
      else chunks.push(chunk)
    },
    reading() {
      if (size === 0 || size > MAX_JSON) return undefined
      try {
        return dialect.readBody(chunks.length === 1 ? chunks[0]! : joined(chunks))
      } catch {
        return undefined
      }
    },
  }
}

/** Decodes a copy of a compressed answer for another meter. */
function decodedMeter(plain: AnswerMeter, encoding: string): AnswerMeter {
  const decoder = decoderOf(encoding)
  // This host cannot decode the format: the answer passes unmetered.
  if (!decoder) return { push() {}, reading: () => undefined }
  const writer = decoder.writable.getWriter()
  let broken = false
  const done = (async () => {
    let size = 0
    for await (const chunk of decoder.readable) {
      size += chunk.length
      if (size > MAX_DECODED) throw new RangeError('more than is read of an answer')
      plain.push(chunk)
    }
  })().catch(() => {
    broken = true
  })
  return {
    push(chunk) {
      writer.write(chunk as Uint8Array<ArrayBuffer>).catch(() => {
        broken = true
      })
    },
    async reading() {
      await writer.close().catch(() => {
        broken = true
      })
      await done
      return broken ? undefined : plain.reading()
    },
  }
}
