import { readBody } from '../../shared/http/body-limit.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import { loggedIn, type TenantChoice, tenantChoice } from '../../shared/wire/runtime/auth.ts'
import type { Connection } from '../http/http-env.ts'
import { FIRST_TENANT } from '../schema/first-tenant.ts'
import type { TenantShard } from './directory.ts'
import { type Places, type ShardService, tenantsOfEmail } from './places.ts'

/** More than any of these bodies has. */
const MOST_BYTES = 65_536
const decoder = new TextDecoder()

export interface LoginsDeps {
  places: Places
  shards: () => readonly ShardService[]
  at: (place: TenantShard, request: Request, connection: Connection) => Promise<Response>
  /** A digest and what it is of, as for every other request. */
  byDigest: (shown: 'link', hash: string, request: Request, connection: Connection) => Promise<Response>
  home: (request: Request, connection: Connection) => Promise<Response>
}

/** The requests that are for a tenant by what stands in their bodies. */
export function logins({ places, shards, at, byDigest, home }: LoginsDeps) {
  /** The shards in which the e-mail has an account, and of these the one of the tenant that was named. */
  async function candidates({ email, tenantId }: Sent): Promise<TenantShard[]> {
    if (tenantId !== undefined) {
      const named = await places.shardOf(tenantId)
      return named ? [named] : []
    }
    if (email === undefined) return []
    const asked = shards().map(async ({ open }) => (open ? tenantsOfEmail(open.db, email).catch(() => []) : []))
    const tenants = new Set((await Promise.all(asked)).flat())
    const found = await Promise.all([...tenants].map(id => places.shardOf(id)))
    const byShard = new Map(found.flatMap(place => (place ? [[place.shard, place] as const] : [])))
    return [...byShard.values()]
  }

  return {
    async byEmail(request: Request, connection: Connection): Promise<Response> {
      const bytes = await readBody(request, MOST_BYTES)
      const again = () => new Request(request.url, { method: 'POST', headers: request.headers, body: bytes })
      const all = await candidates(sentBy(request, decoder.decode(bytes)))
      const [only, another] = all
      if (only === undefined) return home(again(), connection)
      if (another === undefined) return at(only, again(), connection)
      const answers: Response[] = []
      for (const place of all) answers.push(await at(place, again(), connection))
      return together(answers)
    },

    async byLink(request: Request, connection: Connection): Promise<Response> {
      const bytes = await readBody(request, MOST_BYTES)
      const again = new Request(request.url, { method: 'POST', headers: request.headers, body: bytes })
      const { token } = sentBy(request, decoder.decode(bytes))
      return byDigest('link', sha256Hex(token ?? ''), again, connection)
    },

    /** Where the installation begins: its first owner, and pages for people who are not logged in. */
    firstShard: (): Promise<TenantShard | undefined> => places.shardOf(FIRST_TENANT),
  }
}

interface Sent {
  email?: string
  tenantId?: string
  token?: string
}

function sentBy({ headers }: Request, text: string): Sent {
  const form = headers.get('content-type')?.startsWith('application/x-www-form-urlencoded') === true
  const given: Record<string, unknown> = form ? Object.fromEntries(new URLSearchParams(text)) : membersOf(text)
  const of = (name: string) => (typeof given[name] === 'string' && given[name] !== '' ? given[name] : undefined)
  const [email, tenantId, token] = [of('email'), of('tenantId'), of('token')]
  return {
    ...(email !== undefined && { email }),
    ...(tenantId !== undefined && { tenantId }),
    ...(token !== undefined && { token }),
  }
}

/** What cannot be read is refused by the shard that gets it. */
function membersOf(text: string): Record<string, unknown> {
  try {
    const value = readJson(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** One password that fits in several shards is answered as one that fits several tenants of one shard. */
async function together(answers: readonly Response[]): Promise<Response> {
  const right = answers.filter(({ status }) => status < 400 || status === 409)
  const [only, another] = right
  if (only === undefined) return answers[0]!
  if (another === undefined) return only
  const tenants: TenantChoice['tenants'] = []
  for (const answer of right) {
    const said: unknown = await answer
      .clone()
      .json()
      .catch(() => undefined)
    const [choice, login] = [tenantChoice.safeParse(said), loggedIn.safeParse(said)]
    if (choice.success) tenants.push(...choice.data.tenants)
    else if (login.success) tenants.push({ id: login.data.user.tenantId, name: login.data.user.tenantId })
    // A page, not an answer of the API: the first one is shown.
    else return only
  }
  const listed = tenants.map(({ id }) => id).join(', ')
  const error = `the e-mail and the password fit several tenants: send the tenantId of one of them: ${listed}`
  const body: TenantChoice = { error, code: 'several_tenants', tenants }
  return Response.json(body, { status: 409 })
}
