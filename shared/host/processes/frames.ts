import { deserialize, serialize } from 'node:v8'

const HEAD = 4

/** A message with its length before it. */
export function frameOf(message: object): Buffer {
  const body = serialize(message)
  const frame = Buffer.allocUnsafe(HEAD + body.length)
  frame.writeUInt32BE(body.length)
  body.copy(frame, HEAD)
  return frame
}

/** Takes pieces as they come and hands on whole messages. Both ends are processes of one service. */
export function frameReader(heard: (message: unknown) => void): (piece: Buffer) => void {
  let pieces: Buffer[] = []
  let held = 0
  let wanted = HEAD
  return piece => {
    pieces.push(piece)
    held += piece.length
    if (held < wanted) return
    let rest = pieces.length === 1 ? piece : Buffer.concat(pieces, held)
    for (;;) {
      if (rest.length < HEAD) break
      const whole = HEAD + rest.readUInt32BE()
      if (rest.length < whole) {
        wanted = whole
        break
      }
      heard(deserialize(rest.subarray(HEAD, whole)))
      rest = rest.subarray(whole)
      wanted = HEAD
    }
    pieces = rest.length === 0 ? [] : [rest]
    held = rest.length
  }
}
