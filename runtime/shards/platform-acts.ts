import { sha256Hex } from '../../shared/sign/sha256.ts'
import type { Tenant } from '../../shared/wire/runtime/auth.ts'
import { LIMIT } from '../../shared/wire/runtime/conventions.ts'
import { accessEndpoints } from '../../shared/wire/runtime/endpoints/access.ts'
import { writeCursor } from '../http/cursor.ts'
import type { Connection, Principal } from '../http/http-env.ts'
import { nextLink } from '../http/page.ts'
import { FIRST_TENANT } from '../schema/first-tenant.ts'
import type { Directory } from './directory.ts'
import type { Places, ShardService } from './places.ts'
import { copyRequest, shardAway, tenantMoves } from './refusals.ts'
import type { PlatformAct } from './request-route.ts'

export interface PlatformDeps {
  directory: Directory
  places: Places
  shards: () => readonly ShardService[]
  now: () => Date
  /** The answer of one shard, for a caller whom another shard has recognised. */
  at: (shard: string, request: Request, connection: Connection) => Promise<Response>
}

/** What the platform's administrator does over all shards. The caller was recognised, and holds `platform:admin`. */
export function platformActs({ directory, places, shards, now, at }: PlatformDeps) {
  /** The open shard with the fewest tenants; of a repeated request the one that was chosen first. */
  async function shardForNew({ headers }: Request, { keyId }: Principal): Promise<string | undefined> {
    const [all, counts] = await Promise.all([directory.shards(), directory.counts()])
    const served = new Set(shards().flatMap(({ name, open }) => (open ? [name] : [])))
    const [least] = all
      .filter(({ name, state }) => state === 'open' && served.has(name))
      .toSorted((a, b) => (counts.get(a.name) ?? 0) - (counts.get(b.name) ?? 0))
    const key = headers.get('idempotency-key')
    if (least === undefined || key === null) return least?.name
    return directory.placement(sha256Hex(`${keyId}\n${key}`), least.name, now().getTime())
  }

  async function create(request: Request, connection: Connection, principal: Principal): Promise<Response> {
    const shard = await shardForNew(request, principal)
    if (shard === undefined) return shardAway()
    const answer = await at(shard, request, connection)
    if (answer.status !== 201) return answer
    const made = (await answer.clone().json()) as Tenant
    await directory.learn({ tenantId: made.id, shard })
    return answer
  }

  async function list(request: Request, connection: Connection, { tenantId }: Principal): Promise<Response> {
    const asked = shards().filter(({ open }) => open !== undefined)
    const answers = await Promise.all(
      asked.map(async ({ name }) => ({ name, answer: await at(name, copyRequest(request), connection) })),
    )
    const failed = answers.find(({ answer }) => !answer.ok)
    if (failed) return failed.answer
    const pages = await Promise.all(
      answers.map(async ({ name, answer }) => ((await answer.json()) as Tenant[]).map(tenant => ({ name, tenant }))),
    )
    const rows = pages.flat().toSorted((a, b) => newer(a.tenant, b.tenant))
    const url = new URL(request.url)
    const limit = Number(url.searchParams.get('limit') ?? url.searchParams.get('pageSize') ?? LIMIT.default)
    // Both copies of a tenant that was moved stand on one page: the next one begins behind both, and only one of them is shown.
    let end = limit
    while (end < rows.length && rows[end]!.tenant.id === rows[end - 1]!.tenant.id) end++
    const page = rows.slice(0, end)
    const more = rows.length > end || answers.some(({ answer }) => answer.headers.has('link'))
    const last = page.at(-1)?.tenant
    const shown: Tenant[] = []
    for (const { name, tenant } of page) {
      const place = await places.shardOf(tenant.id)
      // A copy that a move has left, and the first tenant that every store begins with.
      if (place ? place.shard === name : tenant.id !== FIRST_TENANT) shown.push(tenant)
    }
    const headers = new Headers()
    if (more && last) {
      const listed = JSON.stringify([accessEndpoints.tenants.id, tenantId, {}])
      const cursor = writeCursor({ at: Date.parse(last.createdAt), id: last.id }, listed)
      headers.set('link', nextLink(url, limit, cursor))
    }
    return Response.json(shown, { headers })
  }

  async function inTenant(
    act: Extract<PlatformAct, { act: 'inTenant' }>,
    request: Request,
    connection: Connection,
    fallback: string,
  ): Promise<Response> {
    const place = await places.shardOf(act.tenantId)
    if (place?.fenced === true) return tenantMoves()
    const answer = await at(place?.shard ?? fallback, request, connection)
    if (act.removes && answer.status === 204) {
      await directory.forget(act.tenantId)
      places.forget(act.tenantId)
    }
    return answer
  }

  return async (
    act: PlatformAct,
    request: Request,
    connection: Connection & { principal: Principal },
    home: string,
  ): Promise<Response> => {
    const { principal } = connection
    if (act.act === 'list') return list(request, connection, principal)
    if (act.act === 'create') return create(request, connection, principal)
    if (act.act === 'inTenant') return inTenant(act, request, connection, home)
    const tenantId = await places.tenantOf('nodeId', act.nodeId)
    const place = tenantId === undefined ? undefined : await places.shardOf(tenantId)
    if (place?.fenced === true && request.method !== 'GET') return tenantMoves()
    return at(place?.shard ?? home, request, connection)
  }
}

/** The order of every list: newest first. */
function newer(a: Tenant, b: Tenant): number {
  const between = Date.parse(b.createdAt) - Date.parse(a.createdAt)
  return between === 0 ? (a.id < b.id ? 1 : -1) : between
}
