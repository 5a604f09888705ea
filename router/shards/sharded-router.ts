import { requestIdOf } from '../../shared/http/request-id.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { errorBodyFor } from '../../shared/wire/router/error.ts'
import { routerErrors } from '../../shared/wire/router/error-cases.ts'
import { requestHeaders } from '../../shared/wire/router/headers.ts'
import type { RouterReadiness } from '../../shared/wire/router/health.ts'
import type { Access } from '../auth/access.ts'
import { pathClassOf } from '../auth/callers.ts'
import { keyring } from '../auth/keys.ts'
import { dialectOf } from '../errors.ts'
import { targetOf, versioned } from '../observe/target.ts'
import { answerRefusal } from '../proxy/exchange.ts'
import type { HandleCall } from '../proxy/handle-call.ts'
import type { Router } from '../router.ts'
import { headerValue } from '../upstream/headers.ts'

export interface ShardedRouterDeps {
  access: Access
  /** Whose calls they are where there are no keys. */
  tenantId: string
  sha256: Sha256
  shards: () => readonly RouterShardService[]
  /** The shard of a tenant. */
  shardOf: (tenant: string) => string | undefined
  outHeaders: boolean
}

const RETRY = { 'retry-after': '5' }

/** One origin over all shards: each request goes to the router of its tenant's shard, which decides about it as it would alone. */
export function shardedRouter({ access, tenantId, sha256, shards, shardOf, outHeaders }: ShardedRouterDeps) {
  const find = keyring(access.keys, sha256)
  const anywhere = () => shards().find(({ open }) => open !== undefined)?.open

  /** The router of a caller, or the name of the shard that is not open. An unknown key is refused alike in all. */
  function routerOf(secret: string | undefined) {
    const key = secret === undefined ? undefined : find(secret)
    if (access.keys.length > 0 && key === undefined) return { open: anywhere(), shard: '', isAdmin: false }
    const shard = shardOf(key?.tenantId ?? tenantId) ?? ''
    const open = shards().find(({ name }) => name === shard)?.open
    return { open, shard, isAdmin: key?.admin === true }
  }

  const handleCall: HandleCall = (exchange, inFlight) => {
    const { open, shard } = routerOf(headerValue(exchange.headers, requestHeaders.key))
    if (open) return open.handleCall(exchange, inFlight)
    const target = versioned(exchange.target)
    const [path = target] = target.split('?', 1)
    if (targetOf(exchange.method, path, exchange.headers) === undefined) return undefined
    const refusal = { name: 'overloaded', message: shardAway(shard), headers: RETRY } as const
    answerRefusal(exchange, refusal, { path, traceId: uuidv7(), outHeaders, isObserved: false })
    return 'taken'
  }

  return {
    handleCall,
    async fetch(request: Request): Promise<Response> {
      const { pathname } = new URL(request.url)
      if (pathname === '/readyz') return readiness(request, shards())
      const { open, shard, isAdmin } = routerOf(request.headers.get(requestHeaders.key) ?? undefined)
      if (open) return open.router.fetch(request)
      const path = versioned(pathname)
      const room = pathClassOf(path)
      // What is the same in all of them, and what is of all tenants.
      const other = room === 'open' || (isAdmin && room !== 'provider') ? anywhere() : undefined
      if (other) return other.router.fetch(request)
      const id = requestIdOf(request.headers.get('x-request-id') ?? undefined)
      const body = errorBodyFor(dialectOf(path), 'overloaded', shardAway(shard), id)
      return Response.json(body, { status: routerErrors.overloaded.status, headers: RETRY })
    },
  }
}

/** Ready while one shard is: the tenants of the others are refused meanwhile. */
async function readiness({ url, headers }: Request, shards: readonly RouterShardService[]): Promise<Response> {
  const answers = await Promise.all(
    shards.map(async ({ name, open }) => {
      // The request of a host may be no `Request` that can be copied.
      const answer = await open?.router.fetch(new Request(url, { headers }))
      return { name, answer }
    }),
  )
  const refusal = answers.find(({ answer }) => answer !== undefined && ![200, 503].includes(answer.status))?.answer
  if (refusal) return refusal
  const all = await Promise.all(
    answers.map(async ({ name, answer }) => ({ name, now: answer && ((await answer.json()) as RouterReadiness) })),
  )
  const checks: Record<string, string> = {}
  for (const { name, now } of all) {
    for (const [check, said] of Object.entries(now?.checks ?? { store: 'does not answer yet' })) {
      if (said === 'ok') checks[check] ??= 'ok'
      else checks[check] = [checks[check] ?? 'ok', `shard ${name}: ${said}`].filter(one => one !== 'ok').join('; ')
    }
  }
  const isReady = all.some(({ now }) => now?.status === 'ready')
  const value: RouterReadiness = { status: isReady ? 'ready' : 'not_ready', checks }
  return Response.json(value, { status: isReady ? 200 : 503 })
}

/** One shard as a process serves it: its store and its router, once that could be opened. */
export interface RouterShardService {
  readonly name: string
  /** Undefined while its store cannot be reached for the first time. */
  readonly open: { db: Db; router: Router; handleCall: HandleCall } | undefined
}

/** Why a tenant is refused whose shard has not been opened yet, and its certificates and accounts not been read. */
const shardAway = (name: string): string =>
  `the store of this tenant (shard ${name}) does not answer yet: try again in a moment`

/** Why a caller who sees all tenants is refused: a list without one of the shards would be wrong. */
export const oneShardAway = (name: string): string =>
  `shard ${name} does not answer, and what is asked for is of all tenants: try again in a moment, or ask with the key of one tenant`
