/** Chunks from one side, an async iterable on the other. The producer bounds it: the output cap of a command. */
export function byteQueue() {
  const waiting: Uint8Array[] = []
  let ended = false
  let wake: (() => void) | undefined

  async function* read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = waiting.shift()
      if (next !== undefined) yield next
      else if (ended) return
      else {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    }
  }
  const woken = () => {
    wake?.()
    wake = undefined
  }
  return {
    chunks: read(),
    /** Chunks that nothing has taken yet. */
    get length() {
      return waiting.length
    },
    push(chunk: Uint8Array) {
      waiting.push(chunk)
      woken()
    },
    end() {
      ended = true
      woken()
    },
  }
}

/** All of it, as one array. */
export async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return new Uint8Array(Buffer.concat(parts))
}
