import { readFile } from 'node:fs/promises'
import type { z } from 'zod'
import { readJson } from '../../shared/json/read-json.ts'

/** What was given cannot be read as what it should be; told in one line. */
export class Unusable extends Error {}

export async function readGiven<S extends z.ZodType>(path: string, what: string, schema: S): Promise<z.output<S>> {
  let given: unknown
  try {
    given = readJson(await readFile(path, 'utf8'))
  } catch (cause) {
    const why = cause instanceof SyntaxError ? 'it is not JSON' : 'it cannot be read'
    throw new Unusable(`${path} is not ${what}: ${why}`, { cause })
  }
  const read = schema.safeParse(given)
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw new Unusable(`${path} is not ${what}: ${[issue?.path.join('.'), issue?.message].filter(Boolean).join(': ')}`)
}

/** The fingerprint of a given key; of a document with several keys, of the one that the receipt names. */
export async function fingerprintOf(given: string, keyId: unknown): Promise<string> {
  const { publicKey } = await import('../../shared/sign/ed25519.ts')
  const { fromBase64 } = await import('../../shared/sign/bytes.ts')
  const raw = (text: string) => {
    try {
      return publicKey(fromBase64(text)).fingerprint
    } catch (cause) {
      throw new Unusable(`--key: expected a file, or 32 bytes in base64`, { cause })
    }
  }
  if (/^[A-Za-z0-9+/]{43}=$/.test(given)) return raw(given)
  const { receiptKeys } = await import('../../shared/wire/runtime/receipt.ts')
  const { keys } = await readGiven(given, 'a copy of /.well-known/platform-receipts', receiptKeys)
  const named = keys.find(key => key.keyId === keyId)
  if (!named) throw new Unusable(`${given} does not list the key that the receipt names`)
  if (named.status === 'revoked') throw new Unusable(`${given} says that the key ${named.keyId} was revoked`)
  return raw(named.publicKey)
}
