/** Whether an event stream has named an event so far: a line that begins with `id:`. */
export function eventIds() {
  const wanted = [0x69, 0x64, 0x3a]
  let at = 0
  let any = false
  return {
    read(chunk: Uint8Array) {
      for (const byte of any ? [] : chunk) {
        if (byte === 0x0a || byte === 0x0d) at = 0
        else if (at >= 0) at = byte === wanted[at] ? at + 1 : -1
        if (at === wanted.length) {
          any = true
          return
        }
      }
    },
    get any() {
      return any
    },
  }
}
