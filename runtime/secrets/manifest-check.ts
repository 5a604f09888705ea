import { invalidMember } from '../../shared/http/api-error.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { SecretBinding } from '../../shared/wire/runtime/provider.ts'
import { refusalOf, type SecretUse } from './binding.ts'

/** An agent as it is to be saved; without labels it keeps those that it has. */
export interface Publisher {
  tenantId: string
  name: string
  labels?: Readonly<Record<string, string>> | undefined
}

/** The bindings that a run of an agent could meet, one map for each place that may hold its secrets. */
export type BindingsFor = (
  agent: Publisher,
  names: readonly string[],
) => Promise<readonly ReadonlyMap<string, SecretBinding>[]>

interface Named {
  name: string
  path: string
  use: SecretUse
}

/**
 * Says at once, where it is still to be changed, that a manifest's use of a secret would be refused wherever its runs may go. What decides
 * is the check of each use: a binding may change after this one.
 */
export function manifestSecrets(bindingsFor: BindingsFor) {
  return async (agent: Publisher, manifest: Manifest): Promise<void> => {
    const used = usesOf(manifest)
    if (used.length === 0) return
    const places = await bindingsFor(agent, [...new Set(used.map(({ name }) => name))])
    for (const { name, path, use } of used) {
      const refusals = places.flatMap(place => {
        const binding = place.get(name)
        return binding === undefined ? [] : [refusalOf(name, binding, use)]
      })
      const message = refusals[0]
      if (message !== undefined && !refusals.includes(undefined)) throw invalidMember(path, message)
    }
  }
}

function usesOf(manifest: Manifest): Named[] {
  const nameOf = (ref: string) => ref.slice('secret/'.length)
  return [
    ...manifest.secrets.map(({ ref }, at): Named => {
      return { name: nameOf(ref), path: `manifest.secrets.${at}.ref`, use: { tool: 'sandbox', agent: manifest } }
    }),
    ...manifest.mcpServers.flatMap(({ name: server, url = '', headers = {} }, at) =>
      Object.entries(headers).map(([header, { secretRef }]): Named => {
        const path = `manifest.mcpServers.${at}.headers.${header}.secretRef`
        return { name: nameOf(secretRef), path, use: { tool: 'mcp', server, url } }
      }),
    ),
  ]
}
