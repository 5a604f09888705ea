import { retryAfterMs } from '../../shared/dialects/retry-after.ts'
import { denialIn, readAtMost } from '../../shared/http/outbound/bounded-body.ts'
import type { EgressClient, EgressInit } from '../../shared/http/outbound/egress-client.ts'
import { isDeeper } from '../../shared/http/validate.ts'
import { readExactly } from '../../shared/json/exact-numbers.ts'
import { toBase64, utf8 } from '../../shared/sign/bytes.ts'
import { IN_FAILURES, IN_RESULTS, maskForms, secretForms } from '../../shared/sign/secret-forms.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { backoffDelay } from '../../shared/time/sleep.ts'
import type { Action, Connector, Credential, VendorAnswer, VendorRequest } from './definition.ts'
import { baseOf } from './install.ts'
import { LONGEST_PAUSE_MS, rateGates } from './rate-gate.ts'
import { asDeclined, messageIn, VendorFailure } from './vendor-failure.ts'

export interface CallDeps {
  fetch: EgressClient['fetch']
  clock: Clock
  /** Sits out a pause; in tests, time that passes at once. */
  wait: (ms: number, signal: AbortSignal) => Promise<void>
  deadlineMs?: number
}

/** An install as a call needs it. */
export interface Target {
  installId: string
  connector: Connector
  credential: Credential
  baseUrl?: string | undefined
}

export interface CallOptions {
  /** Sent as Idempotency-Key with everything that changes something. */
  key?: string | undefined
  signal?: AbortSignal | undefined
  /** How often a request that may be repeated is sent in all; 1 where the caller decides about repeating. */
  tries?: number
}

const DEADLINE_MS = 30_000
const MOST_TRIES = 3
const PAUSES = { baseMs: 500, maxMs: LONGEST_PAUSE_MS, jitter: false }
/** A vendor that answers so may be asked again; Notion has a status of its own for it. */
const BUSY = new Set([429, 503, 529])
/** GitHub counts by the hour. A reset that is further away is in another unit. */
const LONGEST_WINDOW_MS = 2 * 3_600_000
const MOST_BYTES = 4 * 1024 * 1024
/** What is nested deeper can be read and not written again. */
const MOST_LEVELS = 500
const decoder = new TextDecoder()

type SenderDeps = Pick<CallDeps, 'fetch' | 'clock' | 'wait'> & { gates: ReturnType<typeof rateGates> }

export type VendorCalls = ReturnType<typeof vendorCalls>

/**
 * Every request to a vendor goes through here: its deadline, the rate rule of its install, the credentials, what may be
 * repeated, what counts as a failure, and no secret in anything that comes out of it.
 */
export function vendorCalls({ fetch, clock, wait, deadlineMs = DEADLINE_MS }: CallDeps) {
  const gates = rateGates({ monotonic: clock.monotonic, wait })

  /** Runs `work` under one deadline for all of its requests and pauses. */
  async function within<T>(given: AbortSignal | undefined, name: string, work: (signal: AbortSignal) => Promise<T>) {
    const stop = new AbortController()
    const onAbort = () => stop.abort(given?.reason)
    if (given?.aborted) onAbort()
    given?.addEventListener('abort', onAbort, { once: true })
    const late = () => stop.abort(tooLate(name, deadlineMs))
    const timer = setTimeout(late, deadlineMs)
    try {
      return await work(stop.signal)
    } finally {
      clearTimeout(timer)
      given?.removeEventListener('abort', onAbort)
      // Ends what is still under way, such as the others of a handful of requests of which one failed.
      stop.abort(new Error('the call is over'))
    }
  }

  return {
    /** Runs an action with arguments that were checked. The answer is an object; a list's may hold `nextCursor`. */
    async execute(
      target: Target,
      action: Action,
      args: Record<string, unknown>,
      options: CallOptions = {},
    ): Promise<Record<string, unknown>> {
      const { send, toReported } = requestSender({ fetch, clock, wait, gates }, target, action.effect, options)
      return within(options.signal, target.connector.id, async signal => {
        const { credential } = target
        const { body, next } = await action.run(args, { credential, send: request => send(request, signal) })
        return { ...asObject(body), ...(next !== undefined && { nextCursor: next }) }
      }).catch((error: unknown) => {
        throw toReported(error)
      })
    },

    /** Asks the vendor whether it takes the credentials; gives the account that they are of, where it says. */
    async probe(target: Target): Promise<string | undefined> {
      const { connector, credential } = target
      const { request, account, alsoGood } = connector.probe
      const { send } = requestSender({ fetch, clock, wait, gates }, target, 'read', {})
      return within(undefined, connector.id, async signal => {
        try {
          const { body } = await send(request(credential), signal)
          const found = account?.(body)
          return typeof found === 'string' || typeof found === 'number' ? String(found).slice(0, 256) : undefined
        } catch (error) {
          if (error instanceof VendorFailure && alsoGood !== undefined && error.status === alsoGood) return undefined
          throw error
        }
      })
    },
  }
}

function requestSender(
  { fetch, clock, wait, gates }: SenderDeps,
  target: Target,
  effect: Action['effect'],
  options: CallOptions,
) {
  const { installId, connector, credential, baseUrl } = target
  const base = baseOf(connector, credential, baseUrl)
  const own = {
    accept: 'application/json',
    'user-agent': 'waybill',
    ...connector.headers,
    ...connector.authorize(credential),
  }

  let wrote = false

  async function once(request: VendorRequest, signal: AbortSignal): Promise<VendorAnswer> {
    const { method = 'GET' } = request
    const leave = await gates.enter(installId, connector.rate, signal)
    try {
      const { headers, body } = encoded(request)
      const changes = method !== 'GET' && method !== 'HEAD'
      const key = options.key !== undefined && changes && effect !== 'read' ? options.key : undefined
      const init: EgressInit = {
        method,
        signal,
        headers: { ...own, ...headers, ...(key !== undefined && { 'idempotency-key': key }) },
        ...(body !== undefined && { body }),
      }
      const url = urlOf(base, request)
      wrote ||= changes
      const answer = await fetch(url, init)
      return await readAnswer(target, clock.now, answer)
    } catch (error) {
      throw signal.aborted ? signal.reason : toFailure(target, error)
    } finally {
      leave()
    }
  }

  /** Sends a request, and again after a pause where that does nothing twice. */
  async function send(request: VendorRequest, signal: AbortSignal): Promise<VendorAnswer> {
    const { method = 'GET' } = request
    const most = effect !== 'once' || method === 'GET' || method === 'HEAD' ? (options.tries ?? MOST_TRIES) : 1
    for (let tried = 1; ; tried++) {
      try {
        return await once(request, signal)
      } catch (error) {
        if (!(error instanceof VendorFailure) || !error.later) throw error
        const pauseMs = error.retryAfterMs ?? backoffDelay(PAUSES, tried)
        if (error.retryAfterMs !== undefined) gates.pause(installId, pauseMs)
        if (tried >= most || pauseMs > LONGEST_PAUSE_MS) throw error
        await wait(pauseMs, signal)
      }
    }
  }

  return {
    send,
    /** Where nothing was sent that could change something, nothing was changed. */
    toReported: (error: unknown) => (error instanceof VendorFailure && !wrote ? asDeclined(error) : error),
  }
}

/** What a vendor answered; an answer that is a failure is thrown, with no secret in it. */
async function readAnswer(
  { connector, credential }: Target,
  nowOf: () => Date,
  answer: Response,
): Promise<VendorAnswer> {
  const redact = redaction(connector, credential, IN_FAILURES)
  const withoutSecrets = redaction(connector, credential, IN_RESULTS)
  const { status, headers } = answer
  const { body: bytes, truncated } = await readAtMost(answer, MOST_BYTES)
  const text = withoutSecrets(decoder.decode(bytes))
  const parsed = parse(text)
  const problem = 'value' in parsed ? connector.problem?.(parsed.value, status, headers) : undefined
  if (problem === undefined && status >= 200 && status < 300) {
    if (truncated) throw new VendorFailure({ status, message: `answered with more than ${MOST_BYTES} bytes` })
    if (!('value' in parsed)) throw new VendorFailure({ status, message: `answered with something ${parsed.wrong}` })
    return { status, headers, body: parsed.value }
  }
  const now = nowOf()
  const pauseMs = retryAfterMs(name => headers.get(name), now) ?? problem?.pauseMs ?? untilReset(headers, now)
  const later = problem?.limited || BUSY.has(status) || (status === 403 && pauseMs !== undefined)
  const declined = problem?.limited || (status < 500 && (problem === undefined ? status >= 400 : !problem.unsure))
  throw new VendorFailure({
    status,
    retryAfterMs: pauseMs,
    later,
    declined,
    refused: problem?.refused ?? status === 401,
    message: redact(
      problem?.message ?? ('value' in parsed ? messageIn(parsed.value) : undefined) ?? `answered ${status}`,
    ),
  })
}

/** GitHub and Vercel name the time at which their window resets, in whole seconds since 1970. */
function untilReset(headers: Headers, now: Date): number | undefined {
  if (headers.get('x-ratelimit-remaining') !== '0') return undefined
  const ms = (Number(headers.get('x-ratelimit-reset')) + 1) * 1000 - now.getTime()
  // By a clock that is ahead, the window has started already.
  return Math.abs(ms) <= LONGEST_WINDOW_MS ? Math.max(1000, ms) : undefined
}

function toFailure({ connector, credential }: Target, error: unknown): unknown {
  const redact = redaction(connector, credential, IN_FAILURES)
  if (error instanceof VendorFailure) return error
  const denial = denialIn(error)
  if (denial) return new VendorFailure({ message: redact(denial.message), declined: !denial.mayBeDone, cause: denial })
  const why = error instanceof Error ? redact(error.message) : 'failed'
  return new VendorFailure({ message: `could not be reached: ${why}`, unreachable: true, cause: error })
}

function tooLate(name: string, ms: number): VendorFailure {
  return new VendorFailure({ message: `${name} took longer than ${ms / 1000} s`, unreachable: true })
}

function urlOf(base: string, { path, query = {} }: VendorRequest): URL {
  const url = new URL(`${base}${path}`)
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) url.searchParams.append(name, String(one))
    }
  }
  return url
}

function encoded({ headers, json, form }: VendorRequest): { headers: Record<string, string>; body?: string } {
  if (json !== undefined) {
    return { headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body: JSON.stringify(json) }
  }
  if (form === undefined) return { headers: { ...headers } }
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(form)) if (value !== undefined) body.append(name, String(value))
  return { headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers }, body: body.toString() }
}

function parse(text: string): { value: unknown } | { wrong: string } {
  if (text.trim() === '') return { value: {} }
  if (isDeeper(text, MOST_LEVELS)) return { wrong: `nested deeper than ${MOST_LEVELS} levels` }
  try {
    // The digits of a number that would be changed are passed on as a text.
    return { value: readExactly(text, written => written) }
  } catch {
    return { wrong: 'that is not JSON' }
  }
}

/** A vendor's array becomes `{ items }` (docs/spec/runtime.md §8). */
function asObject(body: unknown): Record<string, unknown> {
  if (Array.isArray(body)) return { items: body }
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : { value: body }
}

/** Takes the secrets of a credential that have so many characters out of a text, in each form in which a vendor may repeat them. */
export function redaction({ keys }: Connector, { values }: Credential, least: number): (text: string) => string {
  const secret = new Set(keys.flatMap(({ name, secret }) => (secret ? [name] : [])))
  const plain = Object.entries(values).flatMap(([name, value]) =>
    secret.has(name) || OAUTH_SECRETS.has(name) ? [value] : [],
  )
  const names = Object.entries(values).flatMap(([name, value]) => (secret.has(name) ? [] : [value]))
  const forms = plain
    .filter(value => value.length >= least)
    .flatMap(value => [...secretForms(value), ...names.map(name => toBase64(utf8(`${name}:${value}`)))])
  const all = [...new Set(forms)].toSorted((a, b) => b.length - a.length)
  return text => maskForms(text, all)
}

const OAUTH_SECRETS = new Set(['accessToken', 'refreshToken', 'clientSecret'])
