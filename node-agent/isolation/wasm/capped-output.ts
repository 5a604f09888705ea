import type { FromProgram } from './messages.ts'

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
