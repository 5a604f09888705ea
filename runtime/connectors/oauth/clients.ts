import { EnvError } from '../../../shared/env/read-env.ts'
import { clientNames, type OAuthClient } from './vendors.ts'

/** By the name in the variable: the four of Google share `GOOGLE`. */
export type OAuthClients = ReadonlyMap<string, OAuthClient>

const NAME = /^PLATFORM_OAUTH_(.+)_CLIENT_(ID|SECRET)$/
const PRINTABLE = /^[\x21-\x7e]{1,1024}$/

/** Reads PLATFORM_OAUTH_<CONNECTOR>_CLIENT_ID and _CLIENT_SECRET; a wrong one stops the start with its name. */
export function readOAuthClients(vars: Readonly<Record<string, string | undefined>>): OAuthClients {
  const found = new Map<string, Partial<OAuthClient>>()
  for (const [variable, value] of Object.entries(vars).sort()) {
    const [, name, field] = NAME.exec(variable) ?? []
    if (name === undefined || value === undefined || value === '') continue
    if (!clientNames.has(name)) {
      throw new EnvError(`${variable}: expected one of ${[...clientNames].sort().join(', ')} in the place of ${name}`)
    }
    if (!PRINTABLE.test(value)) throw new EnvError(`${variable}: expected printable ASCII characters without spaces`)
    found.set(name, { ...found.get(name), ...(field === 'ID' ? { id: value } : { secret: value }) })
  }
  const clients = new Map<string, OAuthClient>()
  for (const [name, { id, secret }] of found) {
    if (id === undefined) {
      throw new EnvError(`PLATFORM_OAUTH_${name}_CLIENT_ID: needed beside PLATFORM_OAUTH_${name}_CLIENT_SECRET`)
    }
    clients.set(name, { id, ...(secret !== undefined && { secret }) })
  }
  return clients
}
