import { utf8 } from '../sign/bytes.ts'

export interface SseEvent {
  event: string
  data: unknown
  id?: string | number
}

/** An event as it goes over the wire, made once for however many readers. */
export type SseFrame = Uint8Array

/** Sends a frame at once, where everything before it is sent; false where the reader is behind or gone, and the frame was not taken. */
export type SseHand = (frame: SseFrame) => boolean

/** Where the frames of one stream go. */
export interface SseSink {
  write(frame: SseFrame): void
  /** Bytes that no reader has taken yet. */
  backlog(): number
  close(): void
  fail(error: unknown): void
}

/** What the one who takes the frames tells. */
export interface SseReader {
  /** Everything that was written is taken. */
  taken(): void
  gone(): void
}

export interface SseOptions {
  /** Sent as the first line: how long a browser waits before it comes back. */
  retryMs?: number
  /** A comment line after this much silence, so that proxies keep the connection. */
  heartbeatMs: number
  /** Asked as often: a stream whose reader may not read it any more is ended. */
  admitted?: (() => Promise<boolean>) | undefined
  /** A reader that is this far behind is waited for, and closed when it stays so; it may come back with Last-Event-ID. */
  maxBacklogBytes?: number
  patienceMs?: number
}

const MAX_BACKLOG = 1024 * 1024
const PATIENCE_MS = 10_000
/** One for all streams: an abort without a reason makes an exception with a stack of its own. */
const OVER = new Error('the stream is over')
const HEARTBEAT = utf8(': heartbeat\n\n')

/**
 * An SSE answer fed by `source`. The headers go out at once; the signal of the source is aborted when the reader is
 * gone (a waiting generator is not woken by `return()`), and is pulled only while the reader keeps up. While it has nothing to give it may
 * hand frames on instead, which for a thousand readers of one run takes a fraction of the promises.
 */
export function sseResponse(
  source: (gone: AbortSignal, hand: SseHand) => AsyncIterable<SseEvent | SseFrame>,
  { retryMs, heartbeatMs, admitted, maxBacklogBytes = MAX_BACKLOG, patienceMs = PATIENCE_MS }: SseOptions,
): Response {
  const gone = new AbortController()
  let heartbeat: ReturnType<typeof setTimeout> | undefined
  let lastAt = performance.now()
  let caughtUp = () => {}
  let reader: SseReader | undefined

  function stop(): void {
    clearTimeout(heartbeat)
    gone.abort(OVER)
    caughtUp()
  }

  /** The source is asked for nothing before a reader reads. */
  function open(sink: SseSink): SseReader {
    if (retryMs !== undefined) sink.write(utf8(`retry: ${retryMs}\n\n`))
    void pump(sink)
    return { taken: () => caughtUp(), gone: stop }
  }

  const body = new ReadableStream<Uint8Array>(
    {
      pull(stream) {
        reader ??= open(sinkOf(stream))
        reader.taken()
      },
      cancel: stop,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  )
  feeds.set(body, open)

  /** Until the reader has taken what was written. */
  async function room(): Promise<void> {
    let late = false
    await new Promise<void>(resolve => {
      const patience = setTimeout(() => {
        late = true
        resolve()
      }, patienceMs)
      caughtUp = () => {
        clearTimeout(patience)
        resolve()
      }
    })
    caughtUp = () => {}
    if (late) throw new Error('the reader fell too far behind')
  }

  /** One timer for a stream, set again only when it runs out: a thousand readers of a busy run would set a thousand for each event. */
  function beat(sink: SseSink, inMs = heartbeatMs): void {
    heartbeat = setTimeout(async () => {
      // A store that is away says nothing about the reader.
      if (admitted !== undefined && !(await admitted().catch(() => true))) end(sink)
      if (gone.signal.aborted) return
      const quiet = performance.now() - lastAt
      if (quiet < heartbeatMs - 1) return beat(sink, heartbeatMs - quiet)
      if (sink.backlog() < maxBacklogBytes) sink.write(HEARTBEAT)
      lastAt = performance.now()
      beat(sink)
    }, inMs)
  }

  function end(sink: SseSink): void {
    if (gone.signal.aborted) return
    sink.close()
    stop()
  }

  function hand(sink: SseSink, frame: SseFrame): boolean {
    if (gone.signal.aborted || sink.backlog() >= maxBacklogBytes) return false
    sink.write(frame)
    lastAt = performance.now()
    return true
  }

  async function pump(sink: SseSink): Promise<void> {
    beat(sink)
    try {
      for await (const event of source(gone.signal, frame => hand(sink, frame))) {
        if (gone.signal.aborted) return
        sink.write(event instanceof Uint8Array ? event : sseFrame(event))
        if (sink.backlog() >= maxBacklogBytes) await room()
        if (gone.signal.aborted) return
        lastAt = performance.now()
      }
      end(sink)
    } catch (error) {
      if (!gone.signal.aborted) sink.fail(error)
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

/** Streams without a reader yet, by what would open them. */
const feeds = new WeakMap<ReadableStream, (sink: SseSink) => SseReader>()

/**
 * A host that has a socket may take the frames of an answer itself, in the place of reading its body: each frame then costs a write, and
 * neither a promise nor a queue. Undefined where the body is none of these.
 */
export function feedOf({ body }: Response): ((sink: SseSink) => SseReader) | undefined {
  return body === null || body.locked ? undefined : feeds.get(body)
}

function sinkOf(stream: ReadableStreamDefaultController<Uint8Array>): SseSink {
  return {
    write: frame => stream.enqueue(frame),
    backlog: () => -(stream.desiredSize ?? 0),
    close: () => stream.close(),
    fail: error => stream.error(error),
  }
}

export const sseFrame = (event: SseEvent): SseFrame => utf8(sseText(event))

export function sseText({ event, data, id }: SseEvent): string {
  return (id === undefined ? '' : `id: ${id}\n`) + `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
