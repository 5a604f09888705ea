/** Bytes of many bodies one behind the other, so that they change hands at once. */
export function byteRun(size: number) {
  const bytes = new Uint8Array(size)
  let at = 0
  return {
    bytes,
    /** Adds a part and tells how long it is. */
    put(part: Uint8Array): number {
      bytes.set(part, at)
      at += part.length
      return part.length
    },
  }
}

/** Takes the parts of a run in the order in which they were put there. */
export function takeFrom(bytes: Uint8Array<ArrayBuffer>): (length: number) => Uint8Array<ArrayBuffer> {
  let at = 0
  return length => {
    at += length
    return bytes.subarray(at - length, at)
  }
}
