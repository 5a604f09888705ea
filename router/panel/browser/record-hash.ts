import { toHex, utf8 } from '../../../shared/sign/bytes.ts'
import { canonicalize } from '../../../shared/sign/jcs.ts'

/** Lower-hex SHA-256 of the canonical record without its `hash` (docs/spec/proof.md); undefined for what has no canonical form. */
export async function recordHash(record: unknown): Promise<string | undefined> {
  if (typeof record !== 'object' || record === null) return undefined
  const { hash: _own, ...body } = record as { hash?: unknown }
  let text: string
  try {
    text = canonicalize(body)
  } catch {
    return undefined
  }
  return sha256(text)
}

export async function sha256(text: string): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', utf8(text))))
}
