import type { DialectName } from '../../shared/dialects/candidate.ts'
import { dialects } from '../../shared/dialects/dialects.ts'
import type { RouterErrorCase } from '../../shared/wire/router/error-cases.ts'
import type { HeaderList } from '../upstream/transport.ts'
import type { FrameFlow } from './frame-flow.ts'
import type { Served } from './serve.ts'

/** What the cascade came to: an answer or an upstream's refusal to hand on, or an error of our own. */
export type Outcome =
  | { kind: 'served'; served: Served; isAnswer: boolean; headers: HeaderList }
  | { kind: 'error'; error: RouterErrorCase; message: string; headers: HeaderList }

/** An answer whose first frames go out before it is decided on; the pieces of its end are those that are left. */
export interface Flowing {
  kind: 'flowing'
  status: number
  headers: HeaderList
  flow: FrameFlow
  end: Promise<Outcome>
}

export interface RespondOptions {
  dialect: DialectName
  stream: boolean
  traceId: string
  /** Undefined where keep-alives are off: the head then waits for the decision, however long. */
  keepAlive: { afterMs: number; everyMs: number } | undefined
  /** Headers of an answer whose head had to go out before the decision. */
  earlyHeaders: HeaderList
  /** Told when that head goes out: from then on the status is 200, whatever the decision. */
  committed: () => void
  /** The client went away. */
  gone: () => void
}

/**
 * The response of a cascade. No status line goes out before the decision or the keep-alive deadline, so until then
 * every failure is a real HTTP error; afterwards it is an error event, and nothing that reads as the end of an answer.
 */
export async function respond(outcome: Promise<Outcome | Flowing>, options: RespondOptions): Promise<Response> {
  const { stream, keepAlive } = options
  if (!stream || !keepAlive) {
    const first = await outcome
    return first.kind === 'flowing' ? flowing(first, options) : decided(first, options)
  }
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<'late'>(resolve => {
    timer = setTimeout(() => {
      options.committed()
      resolve('late')
    }, keepAlive.afterMs)
  })
  const first = await Promise.race([outcome, late])
  clearTimeout(timer)
  if (first === 'late') return early(outcome, options)
  return first.kind === 'flowing' ? flowing(first, options) : decided(first, options)
}

const NO_BODY = new Set([204, 205, 304])

/** A Response carries statuses of HTTP only; some hosts make up others. */
export function sendable(status: number): number {
  return status >= 200 && status <= 599 ? status : 502
}

function decided(outcome: Outcome, { dialect, traceId }: RespondOptions): Response {
  if (outcome.kind === 'served') {
    const { status, headers, pieces } = outcome.served
    const sent = NO_BODY.has(status) ? null : body(pieces)
    return new Response(sent, { status: sendable(status), headers: merged(headers, outcome.headers) })
  }
  const error = dialects[dialect].routerError(outcome.error, outcome.message, traceId)
  const headers = merged(
    error.headers.map(([name, value]) => [name, value]),
    outcome.headers,
  )
  return new Response(error.body as Uint8Array<ArrayBuffer>, { status: error.status, headers })
}

/** The head has to go out now: keep-alives until the decision, then the frames or an error event. */
function early(outcome: Promise<Outcome | Flowing>, options: RespondOptions): Response {
  const head: HeaderList = [
    ['content-type', 'text/event-stream; charset=utf-8'],
    ['cache-control', 'no-cache'],
    ['x-accel-buffering', 'no'],
  ]
  const kept = dialects[options.dialect].keepAlive
  return new Response(eventStream(outcome, options, kept), { status: 200, headers: merged(head, options.earlyHeaders) })
}

/** The head of an answer that has begun. */
function flowing(first: Flowing, options: RespondOptions): Response {
  const { status, headers } = first
  return new Response(eventStream(Promise.resolve(first), options), {
    status: sendable(status),
    headers: merged(headers),
  })
}

/** Frames as they may go, keep-alives between them, and the end: what is left of the answer, or an error event. */
function eventStream(
  outcome: Promise<Outcome | Flowing>,
  { dialect, traceId, keepAlive, gone }: RespondOptions,
  opening?: Uint8Array,
): ReadableStream<Uint8Array> {
  const own = dialects[dialect]
  let beat: ReturnType<typeof setInterval> | undefined
  let left = false
  return new ReadableStream<Uint8Array>({
    async start(out) {
      const send = (frame: Uint8Array) => {
        if (!left) out.enqueue(frame)
      }
      if (opening) send(opening)
      if (keepAlive) beat = setInterval(() => send(own.keepAlive), keepAlive.everyMs)
      try {
        const first = await outcome
        if (first.kind === 'flowing') first.flow.attach(send)
        const end = first.kind === 'flowing' ? await first.end : first
        if (end.kind === 'error') send(own.routerErrorEvent(end.error, end.message, traceId))
        else if (end.isAnswer) for (const piece of end.served.pieces) send(piece)
        else send(own.routerErrorEvent('upstream', refusalMessage(end.served), traceId))
        // The client may have left while this was on its way; `cancel` has told the cascade.
        if (!left) out.close()
      } finally {
        clearInterval(beat)
      }
    },
    cancel() {
      left = true
      clearInterval(beat)
      gone()
    },
  })
}

function refusalMessage({ status }: Served): string {
  return `no model of the ladder could answer: the last upstream refused with status ${status}`
}

function body(pieces: readonly Uint8Array[]): BodyInit | null {
  if (pieces.length === 1) return pieces[0] as Uint8Array<ArrayBuffer>
  return new ReadableStream<Uint8Array>({
    start(out) {
      for (const piece of pieces) out.enqueue(piece)
      out.close()
    },
  })
}

function merged(...lists: readonly HeaderList[]): Headers {
  const headers = new Headers()
  for (const list of lists) for (const [name, value] of list) headers.append(name, value)
  return headers
}
