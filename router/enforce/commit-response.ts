import type { DialectName } from '../../shared/dialects/candidate.ts'
import { dialects } from '../../shared/dialects/dialects.ts'
import { errorEvent } from '../../shared/dialects/router-errors.ts'
import { outError } from '../../shared/dialects/translate/error.ts'
import { errorOfBody } from '../../shared/dialects/upstream-error.ts'
import { joined, utf8 } from '../../shared/sign/bytes.ts'
import type { RouterErrorCase } from '../../shared/wire/router/error-cases.ts'
import { ROUTER_HEADER_PREFIX } from '../../shared/wire/router/headers.ts'
import { headerValue, UNBUFFERED } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'
import type { RenderedAnswer } from './render-answer.ts'

/** What the cascade came to: an answer or an upstream's refusal to hand on, or an error of our own. */
export type CascadeOutcome =
  | { kind: 'served'; served: RenderedAnswer; isAnswer: boolean; headers: HeaderList }
  | { kind: 'error'; error: RouterErrorCase; message: string; headers: HeaderList }

/** An answer whose first frames go out before it is decided on; the pieces of its end are those that are left. */
export interface Flowing {
  kind: 'flowing'
  status: number
  headers: HeaderList
  flow: EarlyFrames
  end: Promise<CascadeOutcome>
}

/** What goes to the client, on any host: all of it at once, or frames as they come. */
export type Answer = WholeAnswer | FlowingAnswer

interface WholeAnswer {
  status: number
  headers: HeaderList
  /** None where the status has no body. */
  pieces: readonly Uint8Array[]
}

export interface FlowingAnswer {
  status: number
  headers: HeaderList
  /** Sends the frames; resolves at the end, and rejects where no frame could say how it ended. */
  frames: (send: (frame: Uint8Array) => void) => Promise<void>
  /** To be called when the client goes away. */
  gone: () => void
}

export interface CommitResponseOptions {
  dialect: DialectName
  stream: boolean
  traceId: string
  /** Undefined where keep-alives are off: the head then waits for the decision, however long. */
  keepAlive: { afterMs: number; everyMs: number } | undefined
  /** Headers of an answer whose head had to go out before the decision. */
  earlyHeaders: HeaderList
  /** Comments say our headers that were not known when the head went out. */
  lateHeaders?: boolean
  /** Told when that head goes out: from then on the status is 200, whatever the decision. */
  committed: () => void
  /** The client went away. */
  gone: () => void
}

/**
 * The answer of a cascade. No status line goes out before the decision or the keep-alive deadline, so until then
 * every failure is a real HTTP error; afterwards it is an error event, and nothing that reads as the end of an answer.
 */
export async function commitResponse(
  outcome: Promise<CascadeOutcome | Flowing>,
  options: CommitResponseOptions,
): Promise<Answer> {
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

/** An answer carries statuses of HTTP only; some hosts make up others. */
export function sendable(status: number): number {
  return status >= 200 && status <= 599 ? status : 502
}

function decided(outcome: CascadeOutcome, { dialect, traceId }: CommitResponseOptions): Answer {
  if (outcome.kind === 'served') {
    const { status, headers, pieces } = outcome.served
    return {
      status: sendable(status),
      headers: [...headers, ...outcome.headers],
      pieces: NO_BODY.has(status) ? [] : pieces,
    }
  }
  const { status, headers, body } = dialects[dialect].routerError(outcome.error, outcome.message, traceId)
  return {
    status,
    headers: [...(headers as HeaderList), ['content-length', String(body.length)], ...outcome.headers],
    pieces: [body],
  }
}

/** The head has to go out now: keep-alives until the decision, then the frames or an error event. */
function early(outcome: Promise<CascadeOutcome | Flowing>, options: CommitResponseOptions): Answer {
  const head: HeaderList = [
    ['content-type', 'text/event-stream; charset=utf-8'],
    ['cache-control', 'no-cache'],
    UNBUFFERED,
  ]
  const kept = dialects[options.dialect].keepAlive
  const headers = [...head, ...options.earlyHeaders]
  return { status: 200, headers, ...framesOf(outcome, headers, options, kept) }
}

/** The head of an answer that has started. */
function flowing(first: Flowing, options: CommitResponseOptions): Answer {
  const { status, headers } = first
  return { status: sendable(status), headers, ...framesOf(Promise.resolve(first), headers, options) }
}

/** Frames as they may go, keep-alives between them, and the end: what is left of the answer, or an error event. */
function framesOf(
  outcome: Promise<CascadeOutcome | Flowing>,
  sent: HeaderList,
  { dialect, traceId, keepAlive, lateHeaders, gone }: CommitResponseOptions,
  opening?: Uint8Array,
): Pick<FlowingAnswer, 'frames' | 'gone'> {
  const own = dialects[dialect]
  let beat: ReturnType<typeof setInterval> | undefined
  let left = false
  return {
    async frames(out) {
      // The client may leave while this is on its way; `gone` has told the cascade.
      const send = (frame: Uint8Array) => {
        if (!left) out(frame)
      }
      if (opening) send(opening)
      if (keepAlive) beat = setInterval(() => send(own.keepAlive), keepAlive.everyMs)
      try {
        const first = await outcome
        if (first.kind === 'flowing') first.flow.attach(send)
        const end = first.kind === 'flowing' ? await first.end : first
        if (lateHeaders) for (const comment of lateComments(end.headers, sent)) send(comment)
        if (end.kind === 'error') send(own.routerErrorEvent(end.error, end.message, traceId))
        else if (end.isAnswer) for (const piece of end.served.pieces) send(piece)
        else send(refusalEvent(end.served, dialect, traceId))
      } finally {
        clearInterval(beat)
      }
    },
    gone() {
      left = true
      clearInterval(beat)
      gone()
    },
  }
}

/** Our own headers that the head did not have. */
function lateComments(headers: HeaderList, sent: HeaderList): Uint8Array[] {
  const late = headers.filter(
    ([name]) => name.startsWith(ROUTER_HEADER_PREFIX) && headerValue(sent, name) === undefined,
  )
  return late.map(([name, value]) => utf8(`: ${name} ${value}\n\n`))
}

/** A refusal for a stream whose head is out: what stood in its body, or for its status. */
function refusalEvent({ status, pieces }: RenderedAnswer, dialect: DialectName, traceId: string): Uint8Array {
  return errorEvent(dialect, outError(status, errorOfBody(joined(pieces)), traceId))
}

type EarlyFrames = ReturnType<typeof earlyFrames>

/** Frames on their way to a client whose body is not being read yet. */
export function earlyFrames() {
  let to: ((frame: Uint8Array) => void) | undefined
  let waiting: Uint8Array[] = []
  return {
    send(frame: Uint8Array): void {
      if (to) to(frame)
      else waiting.push(frame)
    },
    /** From now on frames go there, those that waited first. */
    attach(sink: (frame: Uint8Array) => void): void {
      for (const frame of waiting) sink(frame)
      waiting = []
      to = sink
    },
  }
}
