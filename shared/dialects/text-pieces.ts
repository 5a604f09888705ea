/** Text goes out in pieces of at most this many UTF-8 bytes. */
export const PIECE_BYTES = 4096

/** Cuts a text into pieces of at most `limit` UTF-8 bytes, between code points; an empty text has no pieces. */
export function textPieces(text: string, limit = PIECE_BYTES): string[] {
  const pieces: string[] = []
  let start = 0
  let bytes = 0
  for (let at = 0; at < text.length; ) {
    const point = text.codePointAt(at) ?? 0
    const size = pointBytes(point)
    if (bytes + size > limit && at > start) {
      pieces.push(text.slice(start, at))
      start = at
      bytes = 0
    }
    bytes += size
    at += point > 0xffff ? 2 : 1
  }
  if (start < text.length) pieces.push(text.slice(start))
  return pieces
}

/** UTF-8 length of a text without encoding it. */
export function utf8Bytes(text: string): number {
  let bytes = 0
  for (let at = 0; at < text.length; at += 1) {
    const point = text.codePointAt(at) ?? 0
    bytes += pointBytes(point)
    if (point > 0xffff) at += 1
  }
  return bytes
}

function pointBytes(point: number): number {
  if (point < 0x80) return 1
  if (point < 0x800) return 2
  return point > 0xffff ? 4 : 3
}
