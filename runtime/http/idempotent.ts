import type { InStatement } from '@libsql/client/web'
import type { Context } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { Log } from '../../shared/log/log.ts'
import { CanonicalError, canonicalize } from '../../shared/sign/jcs.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import { dbFault } from '../../shared/sql/db-fault.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import { IDEMPOTENCY_KEY } from '../../shared/wire/runtime/conventions.ts'
import { pathOf } from './addresses.ts'
import type { RuntimeHttpEnv } from './http-env.ts'
import { ATTEMPT_MS, type Attempt, type IdempotencyStore, KEPT_MS, type Known } from './idempotency-store.ts'

/**
 * Ties what a call creates to its `Idempotency-Key`. The work of a call and its stored answer cannot be one transaction,
 * so a process may die between them. A handler that creates something therefore adds `bind(<id of what it creates>)` to
 * the very `db.write([...])` that creates it:
 *
 *     await db.write([insertTheThing, ...idempotency.bind(id)])
 *
 * From that commit on a repeat is answered from the object (`again` of the operation), whether or not this call lives to
 * answer. The statement also fails the whole transaction when the claim was lost meanwhile: a call that was held up
 * beyond the deadline, so that a repeat took its place, then writes nothing.
 */
export interface Idempotency {
  bind(objectId: string): InStatement[]
  /** Takes a binding back that was made before something outside was asked, which then certainly did nothing. */
  unbind(): InStatement[]
}

/** For a call without a key: there is nothing to write. */
export const withoutKey: Idempotency = { bind: () => [], unbind: () => [] }

export interface IdempotencyDeps {
  store: IdempotencyStore
  now: () => Date
  newId: () => string
  log: Log
}

/** A call of an operation that takes a key. */
export interface KeyedCall {
  /** What a repeat has to be equal in. */
  body: unknown
  /** A key that came in the body; the header wins. */
  bodyKey: string | undefined
  /** Members of the answer that are shown once; stored and repeated as `"***"`. */
  oneTime?: readonly string[] | undefined
  byReference?: true | undefined
  again(objectId: string): Promise<Response>
  run(idempotency: Idempotency): Promise<Response>
}

export type Idempotent = (context: Context<RuntimeHttpEnv>, call: KeyedCall) => Promise<Response>

const MASK = '***'

/**
 * `Idempotency-Key` on a creating POST (docs/spec/runtime.md §1). Equal calls of one key do the work once: the first claims the key
 * in the store, the others learn that it is in progress, or get the first answer again. See `Idempotency` for what the
 * handler adds so that this holds over a crash.
 */
export function idempotency({ store, now, newId, log }: IdempotencyDeps): Idempotent {
  return async (context, { body, bodyKey, oneTime = [], byReference, again, run }) => {
    const key = readKey(context.req.header('idempotency-key')) ?? bodyKey
    if (key === undefined) return run(withoutKey)
    const { tenantId } = context.get('principal')
    const route = routeText(context.req.method, pathOf(context))
    const bodyHash = sha256Hex(canonicalBody(body ?? null))
    const attempt: Attempt = { tenantId, route, key, attempt: newId(), bodyHash, nowMs: now().getTime() }
    const known = await claim(store, attempt)
    if (known !== undefined) return repeat(context, known, bodyHash, again)

    let answer: Response | undefined
    const beat = setInterval(() => {
      // A beat that is missed is made up for by the next; a claim that is lost shows when the work is committed.
      void store.renew(attempt, now().getTime()).catch(() => undefined)
    }, ATTEMPT_MS / 3)
    try {
      const first = await run({ bind: id => [store.bind(attempt, id)], unbind: () => [store.unbind(attempt)] })
      // A refusal is not stored: the same call may do better later.
      if (!first.ok) return first
      answer = first
      // Bound in the transaction that made the object.
      if (byReference) return answer
      const text = masked(await answer.clone().text(), oneTime)
      await store.complete(attempt, { status: answer.status, text })
      return answer
    } catch (error) {
      if (answer === undefined) {
        const winner = await lostTo(store, attempt, error)
        if (winner === undefined) throw error
        return repeat(context, winner, bodyHash, again)
      }
      // The work is done and the caller is owed its answer; a repeat is answered from the bound object.
      log.error('the answer of an idempotent call could not be stored', { error, route })
      return answer
    } finally {
      clearInterval(beat)
      if (answer === undefined) await store.release(attempt)
    }
  }
}

/**
 * The call that took this attempt's place, so that the store refused to bind what it made: it was held up for longer than an attempt may take, or
 * the clock of another control plane said so.
 */
async function lostTo(store: IdempotencyStore, attempt: Attempt, error: unknown): Promise<Known | undefined> {
  if (dbFault(error) !== 'statement') return undefined
  const known = await store.get(attempt)
  return known?.attempt === attempt.attempt ? undefined : known
}

/** What an earlier call left under the key; undefined when this attempt has it now. */
async function claim(store: IdempotencyStore, attempt: Attempt): Promise<Known | undefined> {
  for (let tried = 0; tried < 5; tried++) {
    if (await store.claim(attempt)) return undefined
    const known = await store.get(attempt)
    // Gone between the two statements: the first call was refused and gave the key back.
    if (known !== undefined) return known
  }
  throw inProgress()
}

async function repeat(
  c: Context<RuntimeHttpEnv>,
  { bodyHash, answer, bound }: Known,
  given: string,
  again: KeyedCall['again'],
): Promise<Response> {
  if (bodyHash !== given) {
    const hours = KEPT_MS / 3_600_000
    const message = `this Idempotency-Key was used with another body or query in the last ${hours} hours: send a new key`
    throw new ApiError('idempotency_mismatch', message)
  }
  if (answer === undefined && bound === undefined) throw inProgress()
  c.header('idempotency-replayed', 'true')
  if (answer !== undefined) {
    return c.body(answer.text, answer.status as 201, { 'content-type': 'application/json' })
  }
  return again(bound!)
}

function inProgress(): ApiError<'idempotency_in_progress'> {
  return new ApiError(
    'idempotency_in_progress',
    'the first call with this Idempotency-Key is still in progress: try again',
  )
}

function readKey(given: string | undefined): string | undefined {
  if (given === undefined || IDEMPOTENCY_KEY.test(given)) return given
  throw new ApiError('validation_failed', 'Idempotency-Key: expected 1 to 255 printable ASCII characters')
}

/** Method and path; a very long path by its digest, so that the index stays small. */
function routeText(method: string, path: string): string {
  return `${method} ${path.length > 200 ? sha256Hex(path) : storableText(path)}`
}

function masked(text: string, oneTime: readonly string[]): string {
  const body = readJson(text) as Record<string, unknown>
  for (const name of oneTime) if (body[name] !== undefined) body[name] = MASK
  return JSON.stringify(body)
}

/** The canonical form of what a client sent; text that UTF-8 cannot hold, or a number that a double cannot, is the client's mistake. */
export function canonicalBody(value: unknown): string {
  try {
    return canonicalize(value)
  } catch (cause) {
    if (!(cause instanceof CanonicalError)) throw cause
    const path = cause.path.slice(1).replaceAll('/', '.').toWellFormed()
    const message = 'expected text without unpaired surrogates, and numbers up to 1.8e308'
    throw new ApiError('validation_failed', `${path === '' ? 'body' : path}: ${message}`, {
      details: [{ path, message }],
      cause,
    })
  }
}
