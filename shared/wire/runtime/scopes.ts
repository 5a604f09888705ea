/** docs/spec/runtime.md §13. Scopes of one resource, then the broad ones. */
export const resourceScopes = [
  'agents:read',
  'agents:write',
  'runs:read',
  'runs:execute',
  'runs:write',
  'runs:approve',
  'receipts:read',
  'sessions:read',
  'sessions:write',
  'connectors:read',
  'connectors:write',
  'connectors:execute',
  'schedules:read',
  'schedules:write',
  'settings:read',
  'settings:write',
  'budgets:read',
  'budgets:write',
  'keys:read',
  'keys:write',
  'nodes:read',
  'nodes:write',
  'webhooks:read',
  'webhooks:write',
] as const

export const scopes = [...resourceScopes, 'read', 'write', 'admin', 'platform:admin'] as const
export type Scope = (typeof scopes)[number]

export const isScope = (value: string): value is Scope => (scopes as readonly string[]).includes(value)

const verb = (scope: string): string => scope.slice(scope.indexOf(':') + 1)

/** What one scope gives directly; chains are followed by `expand`. */
function gives(scope: string): readonly string[] {
  if (scope === 'read') return resourceScopes.filter(one => verb(one) === 'read')
  if (scope === 'write')
    return resourceScopes.filter(
      one => ['read', 'write', 'execute'].includes(verb(one)) && !one.startsWith('keys:') && !one.startsWith('nodes:'),
    )
  if (scope === 'admin') return [...resourceScopes, 'read', 'write']
  if (scope === 'platform:admin') return ['nodes:write']
  if (scope === 'runs:read') return ['receipts:read']
  if (isScope(scope) && verb(scope) === 'write') return [scope.replace(/:write$/, ':read')]
  return []
}

/** The scopes and everything that they imply. */
export function expand(held: readonly string[]): Set<string> {
  const all = new Set<string>()
  const open = [...held]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (all.has(next)) continue
    all.add(next)
    open.push(...gives(next))
  }
  return all
}

const reached = new Map<Scope, ReadonlySet<string>>()

/** Asked at every request, so of each scope it is found out once. */
function implies(held: string, needed: string): boolean {
  if (!isScope(held)) return held === needed
  let all = reached.get(held)
  if (all === undefined) {
    all = expand([held])
    reached.set(held, all)
  }
  return all.has(needed)
}

/** A key without scopes may do everything inside its tenant, and nothing outside of it. */
const effective = (held: readonly string[]): readonly string[] => (held.length === 0 ? ['admin'] : held)

/** Whether any one of the needed scopes is held, directly or by implication. Nothing needed: allowed. */
export function allows(held: readonly string[], needed: readonly string[]): boolean {
  if (needed.length === 0) return true
  return effective(held).some(have => needed.some(scope => implies(have, scope)))
}

/** Whether a key may mint another with these scopes: only what it holds itself. None wanted means the whole tenant. */
export function mayMint(held: readonly string[], wanted: readonly string[]): boolean {
  const have = expand(effective(held))
  return effective(wanted).every(scope => have.has(scope))
}
