import type { Context, MiddlewareHandler } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Log } from '../../shared/log/log.ts'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import { pathOf } from '../http/addresses.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import type { Act, AuditLog } from './log.ts'

export interface AuditedDeps {
  audit: Pick<AuditLog, 'intend' | 'done' | 'drop'>
  log: Log
}

const LONGEST_TARGET = 512
const MOST_FIELDS = 32

/** Before the handler of an administrative operation: writes an entry about each act that is not refused. */
export function audited(deps: AuditedDeps, endpoint: Pick<Endpoint, 'id' | 'path'>): MiddlewareHandler<RuntimeHttpEnv> {
  return createMiddleware<RuntimeHttpEnv>(async (c, next) => {
    const { principal } = c.var
    const act: Act = {
      tenantId: principal.tenantId,
      actor: principal.keyId,
      action: endpoint.id,
      via: pathOf(c) === c.req.path ? 'api' : 'dashboard',
      target: targetOf(c),
      requestId: c.get('requestId'),
    }
    await about(deps, c, act, next, tenantIn(endpoint.path, pathOf(c)))
  })
}

async function about(
  { audit, log }: AuditedDeps,
  c: Context<RuntimeHttpEnv>,
  act: Act,
  next: () => Promise<void>,
  alsoTenant?: string,
): Promise<void> {
  const intent = await audit.intend(act)
  await next()
  try {
    // A repeat of an earlier call did nothing, and neither did one that was refused.
    const nothing = (c.res.status >= 400 && c.res.status < 500) || c.res.headers.has('idempotency-replayed')
    if (nothing) await audit.drop(intent)
    else {
      const outcome = c.res.status < 400 ? 'done' : 'unknown'
      await audit.done(intent, act, { outcome, object: await objectOf(c.res), fields: fieldsOf(c), alsoTenant })
    }
  } catch (error) {
    // The act is done and its caller is owed the answer; what was announced becomes an entry with an unknown outcome.
    log.error('an administrative act could not be written into the audit log', { error, action: act.action })
  }
}

/** The path, and the action where a query names what is done there. */
function targetOf(c: Context): string {
  const action = pathOf(c).endsWith('/execute') ? c.req.query('action') : undefined
  const target = action === undefined ? pathOf(c) : `${pathOf(c)}?action=${action}`
  return target.slice(0, LONGEST_TARGET).toWellFormed()
}

/** The tenant in the path of an operation on something of another one. */
function tenantIn(path: string, called: string): string | undefined {
  return path.startsWith('/v1/tenants/{id}/') ? called.split('/')[3] : undefined
}

/** What a POST made, by its id, else its name. */
async function objectOf(answer: Response): Promise<string | undefined> {
  if (answer.status !== 201) return undefined
  const body = (await answer.clone().json()) as {
    versionId?: unknown
    id?: unknown
    name?: unknown
    key?: { id?: unknown }
    user?: { id?: unknown }
  }
  const found = [body.versionId, body.id, body.key?.id, body.user?.id, body.name].find(one => typeof one === 'string')
  return found as string | undefined
}

/** The names of what a change wanted changed. */
function fieldsOf(c: Context<RuntimeHttpEnv>): string[] | undefined {
  if (c.req.method !== 'PUT' && c.req.method !== 'PATCH') return undefined
  const body: unknown = c.get('body')
  if (typeof body !== 'object' || body === null) return undefined
  return Object.keys(body)
    .slice(0, MOST_FIELDS)
    .map(name => name.toWellFormed())
    .toSorted()
}

/** What is configured, not what is worked on: runs and sessions have records of their own. */
const CONFIGURES = new Set([
  'agents:write',
  'connectors:write',
  'schedules:write',
  'settings:write',
  'budgets:write',
  'keys:write',
  'nodes:write',
  'webhooks:write',
  // Naming people for a tenant needs all of it.
  'admin',
  'platform:admin',
])

/** What a person does with a tenant's credentials, reading or not; what a run does stands in its journal. */
const ACTS_FOR = 'connectors:execute'

/** Whether an operation changes how a tenant is set up. By its scope, so that an operation that is added later is one as well. */
export function isAdministrative({ method, scopes = [] }: Pick<Endpoint, 'method' | 'scopes'>): boolean {
  return scopes.includes(ACTS_FOR) || (method !== 'GET' && scopes.some(scope => CONFIGURES.has(scope)))
}
