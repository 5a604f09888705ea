import { ApiError } from '../../shared/http/api-error.ts'
import type { Log } from '../../shared/log/log.ts'
import { isStoreUnavailable } from '../../shared/sql/db-fault.ts'
import { type ErrorCode, statusOf } from '../../shared/wire/runtime/error.ts'
import type { Readyz } from '../../shared/wire/runtime/health.ts'
import type { ReceiptKeys } from '../../shared/wire/runtime/receipt.ts'
import { allows } from '../../shared/wire/runtime/scopes.ts'
import type { Connection } from '../http/http-env.ts'
import type { Directory, TenantShard } from './directory.ts'
import { logins } from './logins.ts'
import type { Places, ShardService } from './places.ts'
import { platformActs } from './platform-acts.ts'
import { copyRequest, notServed, refused, shardAway, tenantMoves } from './refusals.ts'
import { platformActOf, type RequestRoute, routeOf, type Shown } from './request-route.ts'

export interface ShardedFetchDeps {
  directory: Directory
  places: Places
  shards: () => readonly ShardService[]
  now: () => Date
  log: Log
}

/** What changes nothing is answered also while the tenant's writes are refused. */
const READS = new Set(['GET', 'HEAD', 'OPTIONS'])

/** One origin over all shards: each request goes to the shard of its tenant, and what is of all shards is put together. */
export function shardedFetch(deps: ShardedFetchDeps) {
  const { places, shards, log } = deps
  const streams = openStreams()
  places.onMoves(moves => {
    for (const { tenantId, from, state } of moves) if (state === 'switched') streams.endIn(tenantId, from)
  })

  async function inShard(name: string, request: Request, connection: Connection): Promise<Response> {
    const shard = shards().find(one => one.name === name)
    if (shard === undefined) return notServed(name)
    return shard.open ? shard.open.runtime.fetch(request, connection) : shardAway()
  }

  async function at(
    { tenantId, shard, fenced }: TenantShard,
    request: Request,
    connection: Connection,
  ): Promise<Response> {
    if (fenced && !READS.has(request.method)) return tenantMoves()
    return streams.ending(await inShard(shard, request, connection), tenantId, shard)
  }

  async function anywhere(request: Request, connection: Connection): Promise<Response> {
    const shard = shards().find(({ open }) => open !== undefined)
    return shard ? inShard(shard.name, request, connection) : shardAway()
  }

  async function home(request: Request, connection: Connection): Promise<Response> {
    const place = await login.firstShard()
    return place ? inShard(place.shard, request, connection) : anywhere(request, connection)
  }

  async function byDigest(shown: Shown, hash: string, request: Request, connection: Connection): Promise<Response> {
    const tenantId = await places.tenantOf(shown, hash)
    const place = tenantId === undefined ? undefined : await places.shardOf(tenantId)
    // No shard knows it, and the refusal is the same in all of them.
    if (place === undefined) return shown === 'login' ? home(request, connection) : anywhere(request, connection)
    const act = shown === 'key' ? platformActOf(request) : undefined
    const runtime = act && shards().find(({ name }) => name === place.shard)?.open?.runtime
    const principal = await runtime?.principalOf(request)
    if (act && principal && allows(principal.scopes, ['platform:admin'])) {
      return platform(act, request, { ...connection, principal }, place.shard)
    }
    return at(place, request, connection)
  }

  const login = logins({ places, shards, at, byDigest, home })
  const platform = platformActs({ ...deps, at: inShard })

  const { readiness, metrics, receiptKeys } = answersOfAll(shards)

  function answer(route: RequestRoute, request: Request, connection: Connection): Promise<Response> {
    switch (route.by) {
      case 'digest':
        return byDigest(route.shown, route.hash, request, connection)
      case 'email':
        return login.byEmail(request, connection)
      case 'link':
        return login.byLink(request, connection)
      case 'home':
        return home(request, connection)
      case 'any':
        return anywhere(request, connection)
      case 'readiness':
        return readiness(request, connection)
      case 'metrics':
        return metrics(request, connection)
      case 'receiptKeys':
        return receiptKeys(request, connection)
      case 'peer':
        return inShard(route.shard, request, connection)
    }
  }

  return async (request: Request, connection: Connection = {}): Promise<Response> => {
    try {
      return await answer(routeOf(request), request, connection)
    } catch (error) {
      if (error instanceof ApiError && Object.hasOwn(statusOf, error.code)) {
        return refused(error.code as ErrorCode, error.message, { ...error.headers })
      }
      const { pathname } = new URL(request.url)
      if (isStoreUnavailable(error)) {
        log.warn('no shard was found for a request', { error, method: request.method, path: pathname })
        return shardAway()
      }
      log.error('request failed', { error, method: request.method, path: pathname })
      return refused('internal', 'internal error')
    }
  }
}

/** What is answered by every shard of a process, put together. */
function answersOfAll(shards: () => readonly ShardService[]) {
  /** The same question to each shard that is open. */
  async function ofAll(request: Request, connection: Connection): Promise<{ shard: string; answer: Response }[]> {
    return Promise.all(
      shards().flatMap(({ name: shard, open }) =>
        open ? [open.runtime.fetch(copyRequest(request), connection).then(answer => ({ shard, answer }))] : [],
      ),
    )
  }

  return {
    async readiness(request: Request, connection: Connection): Promise<Response> {
      const answers = await ofAll(request, connection)
      const values = await Promise.all(
        answers.map(async ({ shard, answer }) => ({ shard, value: (await answer.json()) as Readyz })),
      )
      const closed = shards().flatMap(({ name: shard, open, problem }) => {
        const value = { status: 'starting' as const, checks: { database: problem ?? 'not open yet' } }
        return open ? [] : [{ shard, value }]
      })
      const now = readinessOfAll([...values, ...closed])
      return Response.json(now, { status: now.status === 'ready' ? 200 : 503 })
    },

    async metrics(request: Request, connection: Connection): Promise<Response> {
      const answers = await ofAll(request, connection)
      const refusal = answers.find(({ answer }) => !answer.ok)?.answer
      if (refusal) return refusal
      const pages = await Promise.all(answers.map(async ({ shard, answer }) => ({ shard, value: await answer.text() })))
      const away = shards().flatMap(({ name: shard, open }) => (open ? [] : [{ shard, value: STORE_DOWN }]))
      const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }
      return new Response(metricsOfAll([...pages, ...away]), { headers })
    },

    async receiptKeys(request: Request, connection: Connection): Promise<Response> {
      const answers = (await ofAll(request, connection)).filter(({ answer }) => answer.ok)
      const read = await Promise.all(answers.map(async ({ answer }) => (await answer.json()) as ReceiptKeys))
      const all = receiptKeysOfAll(read)
      return all ? Response.json(all) : shardAway()
    },
  }
}

interface OfShard<T> {
  shard: string
  value: T
}

/**
 * A process serves while one of its shards can be used: with a 503 a balancer would take the tenants of all of them away. What is wrong with
 * a shard stands in the check.
 */
function readinessOfAll(all: readonly OfShard<Readyz>[]): Readyz {
  const checks: Record<string, string> = {}
  for (const name of ['database', 'migrations', 'masterKey'] as const) {
    const said = all.flatMap(({ shard, value }) => {
      const check = value.checks[name]
      return check === undefined || check === 'ok' ? [] : [`shard ${shard}: ${check}`]
    })
    if (all.some(({ value }) => value.checks[name] !== undefined)) checks[name] = said.join('; ') || 'ok'
  }
  const statuses = all.map(({ value }) => value.status)
  const status = statuses.find(one => one === 'draining') ?? statuses.find(one => one === 'ready') ?? statuses[0]
  return { status: status ?? 'failing', checks }
}

/** The page of a shard that has not been opened yet. */
const STORE_DOWN = '# TYPE waybill_store_up gauge\nwaybill_store_up 0\n'

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (.*)$/s

/** The pages of several registries as one, each sample with the name of its shard. */
function metricsOfAll(pages: readonly OfShard<string>[]): string {
  const families = new Map<string, { head: string[]; samples: string[] }>()
  for (const { shard, value } of pages) {
    let family: { head: string[]; samples: string[] } | undefined
    for (const line of value.split('\n')) {
      const [, word, name] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? []
      if (name !== undefined) {
        family = families.get(name) ?? { head: [], samples: [] }
        families.set(name, family)
        if (!family.head.some(known => known.startsWith(`# ${word} `))) family.head.push(line)
        continue
      }
      const [, sample, labels, number] = SAMPLE.exec(line) ?? []
      if (sample === undefined) continue
      const all = labels === undefined ? `{shard="${shard}"}` : `${labels.slice(0, -1)},shard="${shard}"}`
      family?.samples.push(`${sample}${all} ${number}`)
    }
  }
  return [...families.values()]
    .flatMap(({ head, samples }) => [...head, ...samples, ''])
    .join('\n')
    .replaceAll('\n\n', '\n')
}

/** The keys of all shards: a receipt may have been signed before its tenant came to where it is now. */
function receiptKeysOfAll(all: readonly ReceiptKeys[]): ReceiptKeys | undefined {
  const [first] = all
  if (first === undefined) return undefined
  const byId = new Map<string, ReceiptKeys['keys'][number]>()
  for (const { keys } of all) {
    for (const key of keys) {
      const known = byId.get(key.keyId)
      // A key that one shard has revoked is revoked.
      if (known === undefined || (key.status === 'revoked' && known.status !== 'revoked')) byId.set(key.keyId, key)
    }
  }
  return { ...first, keys: [...byId.values()] }
}

/** The event streams of tenants, so that they end where the tenant goes elsewhere: clients come again behind the last event. */
function openStreams() {
  const open = new Map<string, Set<{ shard: string; end: () => void }>>()
  return {
    /** The same answer, whose body ends early once its tenant has left the shard. */
    ending(answer: Response, tenantId: string, shard: string): Response {
      const { body } = answer
      if (body === null || answer.headers.get('content-type')?.startsWith('text/event-stream') !== true) return answer
      const stop = new AbortController()
      const one = { shard, end: () => stop.abort() }
      const all = open.get(tenantId) ?? new Set()
      open.set(tenantId, all.add(one))
      const over = () => {
        all.delete(one)
        if (all.size === 0 && open.get(tenantId) === all) open.delete(tenantId)
      }
      return new Response(untilStopped(body, stop.signal, over), answer)
    },
    endIn(tenantId: string, shard: string): void {
      for (const one of open.get(tenantId) ?? []) if (one.shard === shard) one.end()
    },
  }
}

function untilStopped(body: ReadableStream<Uint8Array>, signal: AbortSignal, over: () => void) {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    start(controller) {
      signal.addEventListener(
        'abort',
        () => {
          over()
          void reader.cancel().catch(() => undefined)
          try {
            controller.close()
          } catch {
            // Its reader has left.
          }
        },
        { once: true },
      )
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (signal.aborted) return
        if (done) {
          over()
          controller.close()
        } else controller.enqueue(value)
      } catch (error) {
        over()
        if (!signal.aborted) controller.error(error)
      }
    },
    cancel(reason) {
      over()
      return reader.cancel(reason)
    },
  })
}
