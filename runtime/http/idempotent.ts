import type { Context, MiddlewareHandler } from 'hono'
import { createMiddleware } from 'hono/factory'
import { ApiError } from '../../shared/http/api-error.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { Log } from '../../shared/log/log.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import { IDEMPOTENCY_KEY } from '../../shared/wire/runtime/conventions.ts'
import { storableText } from '../schema/storable-text.ts'
import { canonicalBody } from './canonical-body.ts'
import type { RuntimeHttpEnv } from './http-env.ts'
import { ATTEMPT_MS, type Attempt, type IdempotencyStore, KEPT_MS, type Known } from './idempotency-store.ts'
import { pathOf } from './path-of.ts'

export interface IdempotencyDeps {
  store: IdempotencyStore
  now: () => Date
  newId: () => string
  log: Log
}

export interface RouteIdempotency {
  /**
   * Answers a repeat whose first call created the object and died before its answer was stored: the same status and body
   * as the first, with `"***"` for each one-time secret.
   */
  again(c: Context<RuntimeHttpEnv>, objectId: string): Promise<Response>
  /** True where the answer holds what only a node may keep: then a repeat reads it again by `again`, and only the object's id is kept. */
  byReference?(c: Context<RuntimeHttpEnv>): Promise<boolean>
  /** Members of the answer that are shown once; stored and repeated as `"***"`. */
  oneTime?: readonly string[]
  /** A key that the body may carry for clients without headers; the header wins. */
  bodyKey?: (body: unknown) => string | undefined
}

/** A route's middleware; it stands behind `jsonBody` and before the handler. */
export type Idempotent = (route: RouteIdempotency) => MiddlewareHandler<RuntimeHttpEnv>

const MASK = '***'

/**
 * `Idempotency-Key` on a creating POST (docs/spec/runtime.md §1). Equal calls of one key do the work once: the first claims the key
 * in the store, the others learn that it is in progress, or get the first answer again. See `Idempotency` for what the
 * handler adds so that this holds over a crash.
 */
export function idempotency({ store, now, newId, log }: IdempotencyDeps): Idempotent {
  return ({ again, byReference, oneTime = [], bodyKey }) =>
    createMiddleware<RuntimeHttpEnv>(async (c, next) => {
      const body: unknown = c.req.valid('json' as never)
      const key = readKey(c.req.header('idempotency-key')) ?? bodyKey?.(body)
      if (key === undefined) return next()
      const { tenantId } = c.get('principal')
      const route = routeText(c.req.method, pathOf(c))
      const bodyHash = sha256Hex(canonicalBody(body ?? null))
      const nowMs = now().getTime()
      const attempt: Attempt = { tenantId, route, key, attempt: newId(), bodyHash, nowMs }
      const known = await claim(store, attempt)
      if (known !== undefined) return repeat(c, known, bodyHash, again)

      c.set('idempotency', { statement: objectId => store.bind(attempt, objectId), undo: () => store.unbind(attempt) })
      let answered = false
      const beat = setInterval(() => {
        // A beat that is missed is made up for by the next; a claim that is lost shows when the work is committed.
        void store.renew(attempt, now().getTime()).catch(() => undefined)
      }, ATTEMPT_MS / 3)
      try {
        await next()
        // What a handler throws is an answer by now. A refusal is not kept: the same call may do better later.
        if (c.res.status >= 200 && c.res.status < 300) {
          answered = true
          // Bound in the transaction that made the object.
          if (await byReference?.(c)) return
          await store.complete(attempt, { status: c.res.status, text: masked(await c.res.clone().text(), oneTime) })
        }
      } catch (error) {
        if (!answered) throw error
        // The work is done and the caller is owed its answer; a repeat is answered from the bound object.
        log.error('the answer of an idempotent call could not be stored', { error, route })
      } finally {
        clearInterval(beat)
        if (!answered) await store.release(attempt)
      }
    })
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
  again: RouteIdempotency['again'],
): Promise<Response> {
  if (bodyHash !== given) {
    const hours = KEPT_MS / 3_600_000
    const message = `this Idempotency-Key was used with another body in the last ${hours} hours: send a new key`
    throw new ApiError('idempotency_mismatch', message)
  }
  if (answer === undefined && bound === undefined) throw inProgress()
  c.header('idempotency-replayed', 'true')
  if (answer !== undefined) {
    return c.body(answer.text, answer.status as 201, { 'content-type': 'application/json' })
  }
  return again(c, bound!)
}

function inProgress(): ApiError<'idempotency_in_progress'> {
  return new ApiError('idempotency_in_progress', 'the first call with this Idempotency-Key has not ended: try again')
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
