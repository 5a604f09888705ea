import type { Endpoint } from '../../shared/wire/endpoint.ts'

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
