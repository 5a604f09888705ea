import { writeJson } from './json-text.ts'
import type { Json } from './json-value.ts'

const encoder = new TextEncoder()

/** One frame as it goes to a client: line feeds, one `data:` line, UTF-8. */
export function sseFrame(event: string | undefined, data: Json): Uint8Array {
  // JSON has line ends only as white space between tokens, so a blank there changes nothing and keeps to one data line.
  return sseText(event, writeJson(data).replace(/[\r\n]/g, ' '))
}

export function sseText(event: string | undefined, data: string): Uint8Array {
  return encoder.encode(event === undefined ? `data: ${data}\n\n` : `event: ${event}\ndata: ${data}\n\n`)
}
