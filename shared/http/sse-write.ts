import { utf8 } from '../sign/bytes.ts'

export interface SseEvent {
  event: string
  data: unknown
  id?: string | number
}

export interface SseOptions {
  /** Sent as the first line: how long a browser waits before it comes back. */
  retryMs?: number
  /** A comment line after this much silence, so that proxies keep the connection. */
  heartbeatMs: number
  /** A reader that falls this far behind is closed; it may come back with Last-Event-ID. */
  maxBacklogBytes?: number
}

const MAX_BACKLOG = 1024 * 1024

/**
 * An SSE answer fed by `source`. The headers go out at once; the source is told through its signal when the reader is
 * gone (a waiting generator is not woken by `return()`), and is pulled only while the reader keeps up.
 */
export function sseResponse(
  source: (gone: AbortSignal) => AsyncIterable<SseEvent>,
  { retryMs, heartbeatMs, maxBacklogBytes = MAX_BACKLOG }: SseOptions,
): Response {
  const gone = new AbortController()
  let heartbeat: ReturnType<typeof setTimeout> | undefined

  const body = new ReadableStream<Uint8Array>(
    {
      start(stream) {
        if (retryMs !== undefined) stream.enqueue(utf8(`retry: ${retryMs}\n\n`))
        void pump(stream)
      },
      cancel() {
        stop()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: maxBacklogBytes }),
  )

  function stop(): void {
    clearTimeout(heartbeat)
    gone.abort()
  }

  function beat(stream: ReadableStreamDefaultController<Uint8Array>): void {
    clearTimeout(heartbeat)
    heartbeat = setTimeout(() => {
      if ((stream.desiredSize ?? 0) > 0) stream.enqueue(utf8(': heartbeat\n\n'))
      beat(stream)
    }, heartbeatMs)
  }

  async function pump(stream: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    beat(stream)
    try {
      for await (const event of source(gone.signal)) {
        if (gone.signal.aborted) return
        stream.enqueue(utf8(frame(event)))
        if ((stream.desiredSize ?? 0) <= 0) throw new Error('the reader fell too far behind')
        beat(stream)
      }
      if (!gone.signal.aborted) stream.close()
    } catch (error) {
      if (!gone.signal.aborted) stream.error(error)
    } finally {
      stop()
    }
  }

  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    },
  })
}

function frame({ event, data, id }: SseEvent): string {
  return (id === undefined ? '' : `id: ${id}\n`) + `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
