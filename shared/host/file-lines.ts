import { createReadStream } from 'node:fs'

const NEWLINE = 0x0a

/** The bytes of a file in lots of whole lines, without the newline that ends each lot; a file larger than the memory passes through. */
export async function* lineBatches(path: string): AsyncGenerator<Buffer> {
  let rest: Buffer[] = []
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 18 })) {
    const bytes = chunk as Buffer
    const last = bytes.lastIndexOf(NEWLINE)
    if (last < 0) {
      rest.push(bytes)
      continue
    }
    const lines = Buffer.concat([...rest, bytes.subarray(0, last)])
    rest = [bytes.subarray(last + 1)]
    yield lines
  }
  const left = Buffer.concat(rest)
  if (left.length > 0) yield left
}

/** A newline ends a line, and nothing else does: a text in JSON may hold every other separator of lines. */
export function eachLine(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = []
  for (let at = 0; at <= bytes.length; ) {
    const found = bytes.indexOf(NEWLINE, at)
    const end = found < 0 ? bytes.length : found
    lines.push(bytes.subarray(at, end))
    at = end + 1
  }
  return lines
}
