import { ApiError } from '../../shared/http/api-error.ts'
import type { Log } from '../../shared/log/log.ts'
import { isStoreUnavailable } from '../../shared/sql/store-unavailable.ts'
import { type ErrorCode, statusOf } from '../../shared/wire/runtime/error.ts'
import { allows } from '../../shared/wire/runtime/scopes.ts'
import type { Connection } from '../http/http-env.ts'
import { answersOfAll } from './answers-of-all.ts'
import type { Directory, Place } from './directory.ts'
import { logins } from './logins.ts'
import { openStreams } from './open-streams.ts'
import type { Places } from './places.ts'
import { platformActs } from './platform-acts.ts'
import { notServed, refused, shardAway, tenantMoves } from './refusals.ts'
import { platformActOf, type RequestRoute, routeOf, type Shown } from './request-route.ts'
import type { ShardService } from './shard-service.ts'

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

  async function at({ tenantId, shard, fenced }: Place, request: Request, connection: Connection): Promise<Response> {
    if (fenced && !READS.has(request.method)) return tenantMoves()
    return streams.ending(await inShard(shard, request, connection), tenantId, shard)
  }

  async function anywhere(request: Request, connection: Connection): Promise<Response> {
    const shard = shards().find(({ open }) => open !== undefined)
    return shard ? inShard(shard.name, request, connection) : shardAway()
  }

  async function home(request: Request, connection: Connection): Promise<Response> {
    const place = await login.firstPlace()
    return place ? inShard(place.shard, request, connection) : anywhere(request, connection)
  }

  async function byDigest(shown: Shown, hash: string, request: Request, connection: Connection): Promise<Response> {
    const tenantId = await places.tenantOf(shown, hash)
    const place = tenantId === undefined ? undefined : await places.placeOf(tenantId)
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
