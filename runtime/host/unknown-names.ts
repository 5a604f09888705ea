import { nodeEnv, nodeRunEnv } from '../../node-agent/env.ts'
import { unreadNames } from '../../shared/env/unread-names.ts'
import { runtimeEnv } from '../env.ts'

/** Those of clients, and of whole families: a provider's key, a vendor's OAuth client. */
const OF_CLIENTS = ['PLATFORM_URL', 'PLATFORM_API_KEY']
const FAMILIES = /^PLATFORM_(?:PROVIDER|OAUTH)_[A-Z0-9_]+$/

/** What the environment sets for the runtime and nothing reads. */
export function unknownNames(vars: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set([
    ...[runtimeEnv, nodeEnv, nodeRunEnv].flatMap(schema => Object.keys(schema.shape)),
    ...OF_CLIENTS,
  ])
  const ofNoFamily = Object.fromEntries(Object.entries(vars).filter(([name]) => !FAMILIES.test(name)))
  return unreadNames(ofNoFamily, { prefix: 'PLATFORM_', known })
}
