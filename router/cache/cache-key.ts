import { joined, utf8 } from '../../shared/sign/bytes.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { HeaderList } from '../upstream/transport.ts'

export interface KeyParts {
  tenantId: string
  /** Another config may gate differently, so it knows no answers of this one. */
  configHash: string
  routeIx: number
  profile: string
  target: string
  headers: HeaderList
  body: Uint8Array
}

/** Headers that change what a provider answers, or decide whether it answers at all. */
const TELLING = /^(?:authorization|x-api-key|(?:anthropic|openai)-.+)$/

/** Undefined where the client wants no answer that was kept. Who asks with another key asks something else. */
export function cacheKey({ headers, body, ...named }: KeyParts, sha256: Sha256): string | undefined {
  const telling: string[] = []
  for (const [name, value] of headers) {
    const low = name.toLowerCase()
    if (low === 'cache-control' && /no-(?:cache|store)/i.test(value)) return undefined
    if (TELLING.test(low)) telling.push(`${low}:${value}`)
  }
  const { tenantId, configHash, routeIx, profile, target } = named
  const head = JSON.stringify([tenantId, configHash, routeIx, profile, target, telling.sort()])
  return sha256Hex(joined([utf8(`${head}\0`), body]), sha256)
}
