import type { Context } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { isAnyConnector } from '../../shared/wire/runtime/catalog.ts'
import type { ConnectorInstalled, ExecuteResult } from '../../shared/wire/runtime/connector.ts'
import { connectorEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/connectors.ts'
import type { Principal } from '../http/http-env.ts'
import type { Idempotency } from '../http/idempotent.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { ArgumentError } from './argument-error.ts'
import { readArguments } from './arguments.ts'
import type { Action, Connector } from './definition.ts'
import { type Install, onWire } from './install.ts'
import type { ConnectorService } from './service.ts'
import { inWords, MOST_CHARACTERS, VendorFailure } from './vendor-failure.ts'

export interface ConnectorsDeps {
  service: ConnectorService
}

interface ExecuteCall {
  principal: Principal
  params: { connectorId: string }
  query: { action?: string | undefined }
  idempotency: Idempotency
  context: Context
  /** Undefined for a read by GET. */
  body: Record<string, unknown> | undefined
}

/** Connectors of a tenant (docs/spec/runtime.md §8). Credentials go in and never come out. */
export function connectorOperations({ service }: ConnectorsDeps): Operation[] {
  const { store } = service

  /** By the connector's id or by the install's: either works on every path. */
  async function find(principal: Principal, id: string): Promise<Install> {
    if (!isAnyConnector(id)) return own(principal, await store.byId(id), 'installed connector', id)
    const found = await store.ofTenant(principal.tenantId, id)
    if (found === undefined) throw notFound('installed connector', id)
    return found
  }

  async function execute(call: ExecuteCall): Promise<ExecuteResult> {
    const { body, idempotency } = call
    const { action: asked, ...query } = call.query
    const install = await find(call.principal, call.params.connectorId)
    const [name, action] = actionOf(install, await service.connectorOf(install), asked, body === undefined)
    const { connectorId } = install
    const args = argumentsOf(action, { ...query, ...body })
    const key = call.context.req.header('idempotency-key')
    // A process that dies over a call that changes something must not repeat it when it is asked again.
    const held = action.effect === 'once'
    if (held) await store.write(idempotency.bind(connectorId))
    try {
      const result = await service.execute(install, action, args, { key })
      return { result, connector: connectorId, action: name, data: result }
    } catch (error) {
      if (held && (!(error instanceof VendorFailure) || error.declined)) await store.write(idempotency.unbind())
      if (error instanceof ArgumentError) throw misfit(error)
      throw error instanceof VendorFailure ? upstreamFailed(error, connectorId, name, action) : error
    }
  }

  return [
    operation(endpoints.catalog, ({ principal }) => service.catalogue(principal.tenantId)),
    keyedOperation(
      endpoints.install,
      async ({ principal, body, idempotency }) => {
        const made = await service.install(principal.tenantId, body, idempotency.bind(body.connectorId))
        return installed(made.install, made.warnings)
      },
      { again: async ({ principal }, id) => installed(await find(principal, id), []) },
    ),
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const rows = await store.list(call.principal.tenantId, page)
      return page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(onWire)
    }),
    operation(endpoints.executeRead, call => execute({ ...call, body: undefined })),
    keyedOperation(endpoints.execute, execute, {
      again() {
        const message = 'the first call with this Idempotency-Key was cut off and may have reached the vendor'
        throw new ApiError('upstream_failed', `${message}: look there before you call again with a new key`)
      },
    }),
    operation(endpoints.get, async ({ principal, params }) => {
      const install = await find(principal, params.id)
      return { ...onWire(install), config: { ...install.config } }
    }),
    operation(endpoints.test, async ({ principal, params }) => service.test(await find(principal, params.id))),
    operation(endpoints.remove, async ({ principal, params }) => {
      if (!(await service.uninstall(await find(principal, params.id)))) {
        throw notFound('installed connector', params.id)
      }
    }),
  ]
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
): [name: string, action: Action] {
  const action = name !== undefined && Object.hasOwn(actions, name) ? actions[name] : undefined
  if (name !== undefined && action && (!readOnly || action.effect === 'read')) return [name, action]
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
    connector,
    action,
    upstreamMessage: error.message,
    ...(error.status !== undefined && { upstreamStatus: error.status }),
  }
  const message = `${connector} ${action}: ${inWords(error, effect)}`.slice(0, MOST_CHARACTERS)
  return new ApiError('upstream_failed', message, { members, cause: error })
}
