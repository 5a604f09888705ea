import { ApiError } from '../../shared/http/api-error.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { stopUnder } from '../../shared/time/stop-under.ts'
import type { Receipts } from '../receipts.ts'
import { toClient, toUpstream } from '../upstream/headers.ts'
import { type HeaderList, type Timeouts, type Transport, TransportError } from '../upstream/transport.ts'
import { joinUpstream } from '../upstream/url.ts'
import { type HeldEnd, heldEnd } from './held-end.ts'
import { type Observation, observation } from './observation.ts'
import { sayPassed } from './passed-line.ts'
import type { ObservedEnd } from './record.ts'
import type { Target } from './target.ts'

export interface RelayDeps {
  transport: Transport
  bases: Readonly<Record<'messages' | 'chat', string>>
  /** Of the config in use. */
  timeouts: () => Timeouts
  /** The longest that a call may take; 0 sets no limit. */
  totalMs: () => number
  clock: Clock
  newId: () => string
  log: Log
  /** Undefined where nothing is kept. */
  recorded: Receipts['observed'] | undefined
  /** An answer ends only when its receipt is stored. */
  durable: boolean
  maxBodyBytes: number
}

export interface RelayRequest {
  traceId: string
  method: string
  /** Path and query, as they came. */
  target: string
  headers: HeaderList
  body: AsyncIterable<Uint8Array> | null
  signal: AbortSignal
  /** Index of the matched route; null without one. */
  routeIx: number | null
}

export interface RelayAnswer {
  traceId: string
  status: number
  headers: HeaderList
  body: AsyncIterable<Uint8Array>
}

/** Passes one call through: bytes in, bytes out, with a record of it made beside (docs/spec/router.md §3). */
export async function relay(
  { traceId, method, target, headers, body, signal, routeIx }: RelayRequest,
  to: Target,
  tenantId: string,
  deps: RelayDeps,
): Promise<RelayAnswer> {
  const { clock, transport } = deps
  const { api } = to
  const observed =
    api === undefined || !deps.recorded
      ? undefined
      : observation({ traceId, tenantId, routeIx, target: { ...to, api }, headers }, clock)
  const since = clock.monotonic()
  let status: number | null = null
  let over = false
  const { stop, leave } = stopUnder(signal)
  const mostMs = deps.totalMs()
  const late = mostMs === 0 ? undefined : setTimeout(() => stop.abort(tookTooLong()), mostMs)
  const end = (how: ObservedEnd): Promise<void> | undefined => {
    if (over) return undefined
    over = true
    clearTimeout(late)
    leave()
    signal.removeEventListener('abort', gone)
    const ms = clock.monotonic() - since
    sayPassed(deps.log, { traceId, tenantId, routeIx, method, target, status, how, ms })
    if (!observed) return undefined
    observed.ended(how)
    const stored = deps.recorded?.(observed)
    // Only an answer that is complete waits for it; the loss of another one's receipt is logged where it happens.
    if (how !== 'complete') stored?.catch(() => undefined)
    return stored
  }
  // A client may leave before the first byte of the answer was asked for: nothing else would notice then.
  const gone = () => void end('client_abort')
  signal.addEventListener('abort', gone, { once: true })
  observed?.called()
  let answer: Awaited<ReturnType<Transport['send']>>
  try {
    answer = await transport.send({
      method,
      url: joinUpstream(deps.bases[to.dialect], target),
      headers: toUpstream(headers),
      body: body && watched(body, deps.maxBodyBytes, observed),
      signal: stop.signal,
      timeouts: deps.timeouts(),
    })
  } catch (error) {
    void end(signal.aborted ? 'client_abort' : timedOut(error) ? 'timeout' : 'transport')
    if (signal.aborted) throw signal.reason
    const tooLarge = findTooLarge(error)
    if (tooLarge) throw tooLarge
    throw new ApiError('upstream', unreachable(to.dialect), { cause: error })
  }
  status = answer.status
  observed?.head(answer.status, answer.headers, answer.rawEncoding)
  return {
    traceId,
    status: answer.status,
    headers: toClient(answer.headers),
    body: metered(answer.body, signal, observed, end, deps.durable ? heldEnd(answer.headers) : undefined),
  }
}

/** The request's bytes on their way, counted and remembered. */
async function* watched(body: AsyncIterable<Uint8Array>, maxBytes: number, observed: Observation | undefined) {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge(maxBytes)
    observed?.requestChunk(chunk)
    yield chunk
  }
}

export function tooLarge(maxBytes: number): ApiError {
  return new ApiError('too_large', `the body is larger than the limit of ${maxBytes} bytes`)
}

/** The answer's bytes as they come; the record is made once, however the stream ends. */
async function* metered(
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  observed: Observation | undefined,
  end: (how: ObservedEnd) => Promise<void> | undefined,
  held: HeldEnd | undefined,
): AsyncIterable<Uint8Array> {
  // Leaving the loop early, as a reader that goes away does, runs only `finally`.
  let how: ObservedEnd = 'client_abort'
  let stored: Promise<void> | undefined
  try {
    for await (const chunk of body) {
      const piece = held === undefined ? chunk : held.pass(chunk)
      if (piece !== undefined) yield piece
      observed?.chunk(chunk)
    }
    how = 'complete'
  } catch (error) {
    how = signal.aborted ? 'client_abort' : timedOut(error) ? 'timeout' : 'transport'
    throw error
  } finally {
    stored = end(how)
  }
  await stored
  const rest = held?.rest()
  if (rest !== undefined) yield rest
}

/** Of the limit that an operator has set for calls that are only passed on. */
export function tookTooLong(): TransportError {
  return new TransportError('the call took longer than observe_total_ms', { timeout: 'total' })
}

export function unreachable(dialect: 'messages' | 'chat'): string {
  const name = dialect === 'messages' ? 'ROUTER_UPSTREAM_MESSAGES' : 'ROUTER_UPSTREAM_CHAT'
  return `the upstream of the ${dialect} dialect could not be reached: check the network and ${name}`
}

function timedOut(error: unknown): boolean {
  return error instanceof TransportError && error.timeout !== undefined
}

/** The refusal of a body that grew beyond the limit, wherever the transport has wrapped it. */
export function findTooLarge(error: unknown): ApiError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ApiError && cause.code === 'too_large') return cause
  }
  return undefined
}
