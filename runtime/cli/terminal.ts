import type { Writable } from 'node:stream'
import { isTty } from '../../shared/cli/style.ts'

/** Characters that turn the order of those after them around, so that a line reads as another. */
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** A model's text as a terminal may show it: it moves no cursor, sets no colour and turns nothing around. */
export function printable(text: string): string {
  return [...text.replace(TURNS, '')]
    .filter(character => {
      const code = character.codePointAt(0) ?? 0
      return character === '\n' || character === '\t' || (code >= 0x20 && (code < 0x7f || code > 0x9f))
    })
    .join('')
}

export interface Spinner {
  start(): void
  stop(): void
}

/** Shows that something is going on, to a person only. */
export function spinner(stream: Writable): Spinner {
  if (!isTty(stream)) return { start: () => undefined, stop: () => undefined }
  let timer: ReturnType<typeof setInterval> | undefined
  let at = 0
  return {
    start() {
      timer ??= setInterval(() => stream.write(`\r${'|/-\\'[at++ % 4]}`), 100)
    },
    stop() {
      if (timer === undefined) return
      clearInterval(timer)
      timer = undefined
      stream.write('\r \r')
    },
  }
}
