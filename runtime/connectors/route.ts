import { type Context, Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody } from '../../shared/http/validate.ts'
import { dropAbsent } from '../../shared/wire/aliases.ts'
import { isAnyConnector } from '../../shared/wire/runtime/catalog.ts'
import {
  type ConnectorDetail,
  type ConnectorInstalled,
  connectorInstall,
  type ExecuteResult,
  executeBody,
} from '../../shared/wire/runtime/connector.ts'
import { emptyBody, pageQuery } from '../../shared/wire/runtime/conventions.ts'
import type { Principal, RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import { ArgumentError } from './argument-error.ts'
import { readArguments } from './arguments.ts'
import type { Action, Connector } from './definition.ts'
import type { ConnectorsDeps } from './deps.ts'
import { type Install, onWire } from './install.ts'
import { inWords, MOST_CHARACTERS, VendorFailure } from './vendor-failure.ts'

/** Connectors of a tenant (docs/spec/runtime.md §8). Credentials go in and never come out. */
export function connectorsRoute({ service, idempotent, maxBodyBytes }: ConnectorsDeps) {
  const { store } = service

  /** By the connector's id or by the install's: either works on every path. */
  async function find(principal: Principal, id: string): Promise<Install> {
    if (!isAnyConnector(id)) return own(principal, await store.byId(id), 'installed connector', id)
    const found = await store.ofTenant(principal.tenantId, id)
    if (found === undefined) throw notFound('installed connector', id)
    return found
  }

  async function execute(c: Context<RuntimeHttpEnv>, body: Record<string, unknown>, readOnly: boolean) {
    const { action: name, ...query } = dropAbsent(c.req.query()) as Record<string, string>
    const install = await find(c.get('principal'), c.req.param('connectorId') ?? '')
    const action = actionOf(install, await service.connectorOf(install), name, readOnly)
    const { connectorId } = install
    const args = argumentsOf(action, { ...query, ...body })
    const key = c.req.header('idempotency-key')
    // A process that dies over a call that changes something must not repeat it when it is asked again.
    const held = action.effect === 'once' ? c.get('idempotency') : undefined
    if (held) await store.write([held.statement(connectorId)])
    try {
      const result = await service.execute(install, action, args, { key })
      return c.json({ result, connector: connectorId, action: name!, data: result } satisfies ExecuteResult)
    } catch (error) {
      if (held && (!(error instanceof VendorFailure) || error.declined)) await store.write([held.undo()])
      if (error instanceof ArgumentError) throw misfit(error)
      throw error instanceof VendorFailure ? upstreamFailed(error, connectorId, name!, action) : error
    }
  }

  return new Hono<RuntimeHttpEnv>()
    .get('/v1/connectors/catalog', async c => c.json(await service.catalogue(c.get('principal').tenantId)))
    .post(
      '/v1/connectors/install',
      jsonBody(connectorInstall, maxBodyBytes),
      idempotent({
        again: async (c, id) => c.json(installed(await find(c.get('principal'), id), []), 201),
      }),
      async c => {
        const { tenantId } = c.get('principal')
        const given = c.req.valid('json')
        const bind = c.get('idempotency')?.statement(given.connectorId)
        const made = await service.install(tenantId, given, bind ? [bind] : [])
        return c.json(installed(made.install, made.warnings), 201)
      },
    )
    .get('/v1/connectors', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const rows = await store.list(c.get('principal').tenantId, page)
      return c.json(page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(onWire))
    })
    .get('/v1/connectors/:connectorId/execute', c => execute(c, {}, true))
    .post(
      '/v1/connectors/:connectorId/execute',
      jsonBody(executeBody, maxBodyBytes),
      idempotent({
        again() {
          const message = 'the first call with this Idempotency-Key was cut off and may have reached the vendor'
          throw new ApiError('upstream_failed', `${message}: look there before you call again with a new key`)
        },
      }),
      c => execute(c, c.req.valid('json'), false),
    )
    .get('/v1/connectors/:id', async c => {
      const install = await find(c.get('principal'), c.req.param('id'))
      return c.json({ ...onWire(install), config: { ...install.config } } satisfies ConnectorDetail)
    })
    .post('/v1/connectors/:id/test', jsonBody(emptyBody, maxBodyBytes), async c =>
      c.json(await service.test(await find(c.get('principal'), c.req.param('id')))),
    )
    .delete('/v1/connectors/:id', async c => {
      const install = await find(c.get('principal'), c.req.param('id'))
      if (!(await service.uninstall(install))) throw notFound('installed connector', c.req.param('id'))
      return c.body(null, 204)
    })
}

function installed(install: Install, warnings: string[]): ConnectorInstalled {
  const { connectorId, id, missing } = install
  return { connectorId, status: 'installed', id, ready: missing.length === 0, missing: [...missing], warnings }
}

function actionOf(
  { connectorId }: Install,
  { actions }: Connector,
  name: string | undefined,
  readOnly: boolean,
): Action {
  const action = name !== undefined && Object.hasOwn(actions, name) ? actions[name] : undefined
  if (action && (!readOnly || action.effect === 'read')) return action
  const names = Object.entries(actions).flatMap(([one, { effect }]) => (readOnly && effect !== 'read' ? [] : [one]))
  const valid = names.length === 0 ? 'none' : names.join(', ')
  const message = action
    ? `${name} changes something, so it takes a POST; by GET ${connectorId} has ${valid}`
    : `expected one of the actions of ${connectorId}: ${valid}`
  throw new ApiError('validation_failed', `action: ${message}`, { details: [{ path: 'action', message }] })
}

function argumentsOf(action: Action, given: Record<string, unknown>): Record<string, unknown> {
  try {
    return readArguments(action, given)
  } catch (error) {
    throw error instanceof ArgumentError ? misfit(error) : error
  }
}

function misfit({ message, details }: ArgumentError): ApiError {
  return new ApiError('validation_failed', message, { details })
}

function upstreamFailed(error: VendorFailure, connector: string, action: string, { effect }: Action): ApiError {
  const members = {
    ...{ connector, action, upstreamMessage: error.message },
    ...(error.status !== undefined && { upstreamStatus: error.status }),
  }
  const message = `${connector} ${action}: ${inWords(error, effect)}`.slice(0, MOST_CHARACTERS)
  return new ApiError('upstream_failed', message, { members, cause: error })
}
