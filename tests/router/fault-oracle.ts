import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import { type Exchange, type Fault, type Outcome, outcomeOf } from '../upstream/faults.ts'
import { type Received, received, type Wire } from '../upstream/wire.ts'
import { type Failed, isErrorOf, readAsSdk } from './fault-client.ts'

export interface Case {
  id: string
  fault: Fault
  exchange: Exchange
}

/** What the second rung of a ladder answers. */
export const SECOND = 'From the second rung.'

/** Observe: what the upstream sent, or an error of the router where it sent nothing. Undefined when that is so. */
export function notRelayed({ fault, exchange }: Case, got: Received | Failed): string | undefined {
  const due = received(fault.wire(exchange))
  if ('failed' in got) return `no answer at all: ${got.failed}`
  if (due === undefined)
    return got.status === 502 && isErrorOf(exchange.dialect, got) ? undefined : `${got.status} instead of 502`
  if (got.status !== due.status) return `${got.status} instead of ${due.status}`
  if (got.complete !== due.complete) return got.complete ? 'a cut answer became a whole one' : 'a whole answer was cut'
  const bytes = due.complete ? due.bytes : due.bytes.subarray(0, got.bytes.length)
  return Buffer.compare(bytes, got.bytes) === 0 ? undefined : 'other bytes than the upstream sent'
}

/** Enforce with `rungs` rungs, of which the second is sound: what a client library makes of the answer is the oracle. */
export async function notRouted(
  { fault, exchange }: Case,
  got: Received | Failed,
  rungs: number,
): Promise<string | undefined> {
  if ('failed' in got) return `no answer at all: ${got.failed}`
  const sent = received(fault.wire(exchange))
  const outcome = outcomeFor(outcomeOf(fault, exchange), sent, rungs)
  if (outcome.kind === 'returned' || (rungs === 1 && isRefusal(outcome, sent))) {
    const same = got.complete && got.status === sent?.status && Buffer.compare(sent.bytes, got.bytes) === 0
    return same ? undefined : `${got.status}, and not the refusal of the upstream`
  }
  const read = await readAsSdk(exchange, got.bytes)
  if (rungs === 1 && outcome.kind === 'failover') {
    if (!got.complete) return 'the error was cut'
    if (got.status >= 400) return isErrorOf(exchange.dialect, got) ? undefined : 'not an error of the dialect'
    return exchange.stream && 'failed' in read ? undefined : 'a failure became a success'
  }
  if (got.status !== 200 || !got.complete)
    return `${got.status}, ${got.complete ? 'whole' : 'cut'}: ${Buffer.from(got.bytes).toString().slice(0, 200)}`
  if ('failed' in read) return `a client library fails on it: ${read.failed}`
  const isSecond = JSON.stringify(read.answer).includes(SECOND)
  if (rungs > 1 && outcome.kind !== 'served') return isSecond ? undefined : 'not the answer of the second rung'
  if (isSecond) return 'the second rung answered'
  // Of an answer in a form that the client did not ask for, only the router can make the one it did.
  const direct = sent && (await readAsSdk(exchange, sent.bytes))
  if (!direct || 'failed' in direct) return undefined
  return JSON.stringify(read.answer) === JSON.stringify(direct.answer) ? undefined : 'not what the upstream said'
}

const OF_REQUEST = [400, 404, 413, 422]

/** No request here names the model of a rung, so what one refuses is asked of the next. */
function outcomeFor(outcome: Outcome, sent: ReturnType<typeof received>, rungs: number): Outcome {
  const climbs = outcome.kind === 'returned' && rungs > 1 && sent !== undefined && OF_REQUEST.includes(sent.status)
  return climbs ? { kind: 'failover', errorClass: outcome.errorClass } : outcome
}

/** The upstream said over HTTP that it will not answer, and said all of it; a redirect says something else. */
function isRefusal({ kind }: Outcome, sent: ReturnType<typeof received>): boolean {
  return (
    (kind === 'failover' || kind === 'overflow') && sent?.complete === true && (sent.status < 200 || sent.status > 399)
  )
}

/** Each attempt, and how it ended. */
export const tried = ({ attempts, final }: TraceRecord): string[] => [
  ...attempts.map(({ rung, cause, verdict, error_class }) => `${rung} ${cause} ${verdict} ${error_class ?? ''}`),
  `${final.served_from} ${final.served_rung} ${final.status}${final.truncated ? ' truncated' : ''}`,
]

/** `got` tells whether the head was out before the decision. */
export function dueTries({ fault, exchange }: Case, rungs: number, got: Received | Failed): string[] {
  const sent = received(fault.wire(exchange))
  const outcome = outcomeFor(outcomeOf(fault, exchange), sent, rungs)
  const second = (cause: string) => [`1 ${cause} pass `, 'attempt 1 200']
  switch (outcome.kind) {
    case 'served':
      return ['0 start pass ', 'attempt 0 200']
    case 'returned':
      return [`0 start error ${outcome.errorClass}`, `upstream_error -1 ${sent?.status}`]
    case 'overflow':
      return [
        '0 start error context_overflow',
        ...(rungs > 1 ? second('overflow') : [`upstream_error -1 ${sent?.status}`]),
      ]
    case 'escalation':
      return ['0 start fail ', ...(rungs > 1 ? second('escalation') : ['best_attempt 0 200'])]
    case 'failover': {
      const first = `0 start error ${outcome.errorClass}`
      if (rungs > 1) return [first, ...second('failover')]
      const again = fault.name.includes('milliseconds') ? [`0 retry error ${outcome.errorClass}`] : []
      const head = 'status' in got && got.status === 200 ? '200 truncated' : undefined
      if (isRefusal(outcome, sent)) return [first, ...again, `upstream_error -1 ${sent?.status}`]
      // An error inside an answer is a refusal as well; anything else is no word of the upstream.
      const from =
        outcome.errorClass === 'overloaded' || outcome.errorClass === 'upstream_5xx' ? 'upstream_error' : 'error'
      return [first, `${from} -1 ${head ?? (outcome.errorClass === 'overloaded' ? 529 : 502)}`]
    }
  }
}

export const observedAs = ({ attempts, final }: TraceRecord): string =>
  `${attempts.length} ${final.served_from} ${final.status} ${final.truncated === true} ${/transport|timeout/.exec(attempts[0]?.error_class ?? '')?.[0]}`

export function observedDue({ fault, exchange }: Case): string {
  const wire = fault.wire(exchange)
  const due = received(wire)
  const cut = cutBy(wire)
  if (due === undefined) return `1 error 502 false ${cut}`
  const timed = due.status === 408 ? 'timeout' : undefined
  return `1 passthrough ${due.status} ${!due.complete} ${due.complete ? timed : cut}`
}

const cutBy = ({ end }: Wire) => (end === 'stall' ? 'timeout' : 'transport')
