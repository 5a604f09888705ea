/** Bytes that may wait here before their connection is held up. */
const HIGH_WATER = 64 * 1024

export interface IncomingBody {
  /** The bytes as they come, for one reader. */
  readonly chunks: AsyncIterable<Uint8Array>
  /** False once enough is waiting: `more` is called when the reader has caught up. */
  push(chunk: Uint8Array): boolean
  end(): void
  fail(error: unknown): void
}

/**
 * What a connection brings, for a reader at its own pace: a stream of the platform with its iterator costs as much processor time as all
 * that a call does with the bytes (measured). `left` reports a reader that leaves before the end.
 */
export function incomingBody(more: () => void, left: () => void): IncomingBody {
  let waiting: Uint8Array[] = []
  let bytes = 0
  let held = false
  let over: { error?: unknown } | undefined
  let reader: PromiseWithResolvers<IteratorResult<Uint8Array, undefined>> | undefined

  function ended(): Promise<IteratorResult<Uint8Array, undefined>> {
    const { error } = over!
    // An error is reported once; a reader that goes on is at the end.
    over = {}
    return error === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error)
  }

  const chunks: AsyncIterableIterator<Uint8Array, undefined> = {
    [Symbol.asyncIterator]: () => chunks,
    next() {
      const value = waiting.shift()
      if (value === undefined) {
        if (over) return ended()
        reader = Promise.withResolvers()
        return reader.promise
      }
      bytes -= value.length
      if (held && bytes === 0) {
        held = false
        more()
      }
      return Promise.resolve({ done: false, value })
    },
    return() {
      waiting = []
      if (!over) left()
      over = {}
      return Promise.resolve({ done: true, value: undefined })
    },
  }

  return {
    chunks,
    push(chunk) {
      const waits = reader
      if (waits) {
        reader = undefined
        waits.resolve({ done: false, value: chunk })
        return true
      }
      waiting.push(chunk)
      bytes += chunk.length
      held = bytes >= HIGH_WATER
      return !held
    },
    end() {
      over ??= {}
      reader?.resolve({ done: true, value: undefined })
      reader = undefined
    },
    fail(error) {
      if (reader) {
        over = {}
        reader.reject(error)
        reader = undefined
      } else over ??= { error }
    },
  }
}
