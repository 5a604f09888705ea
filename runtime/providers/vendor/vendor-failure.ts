import type { BadResponse, DialectName, UpstreamError } from '../../../shared/dialects/candidate.ts'
import { dialects } from '../../../shared/dialects/dialects.ts'
import { MAX_WAIT_MS, namedWaitMs } from '../../../shared/dialects/retry-after.ts'
import { denialIn } from '../../../shared/http/outbound/bounded-body.ts'
import { StepFailure } from '../../execution/failure.ts'

const MOST_CHARACTERS = 500

/** Statuses beside 5xx after which the same call may work a little later. */
const PASSING = new Set([408, 409, 425, 429, 498])

/** A provider turns calls away with these before it works on them. */
const TURNED_AWAY = new Set([429, 498, 503, 529])

/** Words of a provider for a person to read, without any of the secrets that were sent to it. */
export type Plain = (text: string) => string

/** A quota or a budget: waiting does not help. */
const isUsedUp = (error: UpstreamError | null): boolean =>
  error?.code === 'insufficient_quota' || error?.type === 'insufficient_quota' || error?.isOfDay === true

/** An answer that is a refusal. */
export function refused(
  who: string,
  dialect: DialectName,
  answer: { status: number; headers: Headers; body: Uint8Array; costNano: number | undefined },
  { plain, now }: { plain: Plain; now: Date },
): StepFailure {
  const { status, headers, body, costNano } = answer
  const { class: code, error } = dialects[dialect].classifyFault(status, body)
  const wait = namedWaitMs(name => headers.get(name), now, error)
  const isLong = wait !== undefined && wait > MAX_WAIT_MS
  const named = isLong ? `, and is to be asked again in ${Math.round(wait / 60_000)} minutes` : ''
  const said = named + (error?.message ? `: ${error.message}` : '')
  const lasts = headers.get('x-should-retry') === 'false' || isUsedUp(error) || isLong
  const transient = status >= 500 || PASSING.has(status)
  // A router says what it has paid; of a provider the status has to tell.
  const isFree = costNano === undefined ? TURNED_AWAY.has(status) : transient && costNano === 0
  return new StepFailure(code, cut(plain(`${who} answered ${status}${said}`)), {
    transient,
    unbilled: isFree && !lasts,
    ...(wait !== undefined && !lasts && { retryAfterMs: wait }),
  })
}

/** An answer with a good status that is none. */
export function unusable(
  who: string,
  dialect: DialectName,
  bad: BadResponse,
  /** `isFree`: a router says that it could call no provider. */
  { plain, isFree = false }: { plain: Plain; isFree?: boolean },
): StepFailure {
  if (bad.error) {
    const { class: code, failover } = dialects[dialect].classifyStreamError(bad.error)
    const message = `${who} broke off its answer${bad.error.message ? `: ${bad.error.message}` : ''}`
    return new StepFailure(code, cut(plain(message)), {
      transient: failover,
      unbilled: failover && isFree && !isUsedUp(bad.error),
    })
  }
  // What was cut on the way may come whole the next time; what was wrong from the start will be wrong again.
  const transient = bad.reason === 'truncated' || bad.reason === 'empty'
  return new StepFailure('bad_response', cut(plain(`${who} gave no usable answer: ${bad.detail}`)), { transient })
}

/** The process has no room for the rest; the same answer may have it later. */
export function noRoomForAnswer(who: string, most: number): StepFailure {
  const message = `${who} gave the longest of the answers that are read at a time, which are over ${most} bytes together`
  return new StepFailure('bad_response', message, { transient: true })
}

/** No answer at all. `unbilled`: it never left. */
export function unreached(
  who: string,
  error: unknown,
  { plain, unbilled }: { plain: Plain; unbilled: boolean },
): StepFailure {
  if (error instanceof StepFailure) return error
  const denial = denialIn(error)
  if (denial) return new StepFailure('outbound_denied', cut(plain(denial.message)), { cause: denial })
  const reason = plain(reasonOf(error))
  // The cause is left out: a client's own error may carry what was sent.
  return new StepFailure('unreachable', cut(`${who} could not be reached: ${reason}`), { transient: true, unbilled })
}

/** The innermost words: `fetch failed` says less than what it wraps. */
function reasonOf(error: unknown): string {
  let at = error
  for (let depth = 0; depth < 8 && at instanceof Error && at.cause instanceof Error; depth++) at = at.cause
  if (!(at instanceof Error)) return 'unknown reason'
  return at.message || ('code' in at ? String(at.code) : at.name)
}

function cut(text: string): string {
  return text.slice(0, MOST_CHARACTERS).toWellFormed()
}
