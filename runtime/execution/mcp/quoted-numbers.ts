import { isInexact } from '../../../shared/json/exact-numbers.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'

/** A rewriter of bytes that come in pieces. */
export interface QuotedNumbers {
  push(chunk: Uint8Array): Uint8Array
  end(): Uint8Array
}

const [QUOTE, BACKSLASH, COLON, LF, CR] = [0x22, 0x5c, 0x3a, 0x0a, 0x0d]
const decoder = new TextDecoder('latin1')

/**
 * Puts quotation marks around the inexact numbers of a JSON text, or of the data lines of an event stream: the reader behind it is the
 * SDK's, which would round them.
 */
export function quotedNumbers(of: 'json' | 'events'): QuotedNumbers {
  let where: 'field' | 'data' | 'other' = of === 'json' ? 'data' : 'field'
  let field = ''
  let inString = false
  let escaped = false
  /** The beginning of a number that the last piece ended in. */
  let held: string | undefined

  const written = (number: string) => utf8(isInexact(number) ? `"${number}"` : number)

  return {
    push(chunk) {
      const parts: Uint8Array[] = []
      let from = 0
      let start = held === undefined ? -1 : 0
      for (let at = 0; at < chunk.length; at++) {
        const byte = chunk[at]!
        if (start >= 0) {
          if (isOfNumber(byte)) continue
          const number = (held ?? '') + decoder.decode(chunk.subarray(start, at))
          if (held !== undefined || isInexact(number)) {
            parts.push(chunk.subarray(from, start), written(number))
            from = at
          }
          held = undefined
          start = -1
        }
        if (of === 'events' && (byte === LF || byte === CR)) {
          where = 'field'
          field = ''
          inString = false
          escaped = false
        } else if (where === 'field') {
          if (byte === COLON) where = field.endsWith('data') ? 'data' : 'other'
          // The mark of the byte order may stand before the first.
          else field = (field + String.fromCharCode(byte)).slice(-7)
        } else if (where === 'other') continue
        else if (inString) {
          if (escaped) escaped = false
          else if (byte === BACKSLASH) escaped = true
          else if (byte === QUOTE) inString = false
        } else if (byte === QUOTE) inString = true
        else if (byte === 0x2d || isDigit(byte)) start = at
      }
      if (start >= 0) {
        parts.push(chunk.subarray(from, start))
        held = (held ?? '') + decoder.decode(chunk.subarray(start))
        from = chunk.length
      }
      if (parts.length === 0) return chunk
      return joined([...parts, chunk.subarray(from)])
    },
    end() {
      const rest = held === undefined ? new Uint8Array(0) : written(held)
      held = undefined
      return rest
    },
  }
}

const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39

/** A digit, or one of `+ - . E e`. */
function isOfNumber(byte: number): boolean {
  return isDigit(byte) || byte === 0x2b || byte === 0x2d || byte === 0x2e || byte === 0x45 || byte === 0x65
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
