import type { FromProgram } from './messages.ts'

/** Names take room as well, on the node too. */
export const MAX_FILES = 10_000
export const MAX_PATH_CHARACTERS = 1024
/** No path of the step protocol is as long. */
export const MAX_CALL_PATH = 1000

/** A program has used up what it may have. */
export class LimitMet extends Error {
  readonly limit: 'output' | 'disk'
  constructor(limit: 'output' | 'disk') {
    super(`the limit of ${limit} is met`)
    this.limit = limit
  }
}

type Output = Extract<FromProgram, { type: 'output' }>

/**
 * What one job writes, on its way to the node: of all that exceeds the limit, one byte, by which the node knows that it is met. True: it is.
 */
export function cappedOutput(
  say: (message: FromProgram) => void,
  { id, outputBytes }: { id: number; outputBytes: number },
) {
  let left = outputBytes + 1
  return (stream: Output['stream'], bytes: Uint8Array): boolean => {
    const sent = bytes.length > left ? bytes.slice(0, left) : bytes
    left -= sent.length
    if (sent.length > 0) say({ type: 'output', id, stream, bytes: sent })
    return left === 0
  }
}
