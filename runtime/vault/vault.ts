import { ApiError } from '../../shared/http/api-error.ts'
import { concat, fromBase64, toBase64Url, utf8 } from '../../shared/sign/bytes.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import type { MasterKey } from './master-key.ts'

/** Where a sealed text belongs. It is authenticated with the text, so that a text moved elsewhere does not open. */
export interface VaultAad {
  tenantId: string
  recordId: string
  field: string
}

export type VaultProblem =
  | 'not_sealed' // the text is not of this form
  | 'other_key' // sealed under a master key that is not here
  | 'broken' // tampered with, cut, or moved from another place

export class VaultError extends Error {
  override name = 'VaultError'
  readonly problem: VaultProblem

  constructor(problem: VaultProblem, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.problem = problem
  }
}

export interface Vault {
  seal(text: string, aad: VaultAad): Promise<string>
  open(sealed: string, aad: VaultAad): Promise<string>
  /** The same record under the current master key; only its key is wrapped anew, so the text itself is not opened. */
  rewrap(sealed: string, aad: VaultAad): Promise<string>
  /** Whether `rewrap` would change anything. */
  isCurrent(sealed: string): boolean
}

const NONCE_BYTES = 12
const DATA_KEY_BYTES = 32
const VERSION = 'wbs1'
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Secrets at rest (docs/spec/runtime.md §10): each text under a data key of its own, that key wrapped by the master key, both with
 * AES-256-GCM, a random 96-bit nonce and the record's place as additional data. A data key seals one text, so its nonce
 * never meets another; the master key's may repeat with a chance below 2^-32 after 2^32 records (NIST SP 800-38D §8.3).
 * A sealed text is `wbs1.<master key id>.<nonce, wrapped key>.<nonce, ciphertext>`. `older` keys open and never seal.
 */
export function vault(current: MasterKey, older: readonly MasterKey[] = []): Vault {
  const keys = new Map([...older, current].map(one => [one.id, one.key]))

  async function dataKeyOf(parts: Parts, aad: VaultAad): Promise<Uint8Array<ArrayBuffer>> {
    const wrapping = keys.get(parts.keyId)
    if (wrapping === undefined) {
      const message = `this was sealed under the master key ${parts.keyId}, and the one given is ${current.id}`
      throw new VaultError('other_key', message)
    }
    return decrypt(wrapping, parts.wrapped, additional('key', aad))
  }

  async function wrap(dataKey: Uint8Array<ArrayBuffer>, aad: VaultAad): Promise<Uint8Array<ArrayBuffer>> {
    return encrypt(current.key, dataKey, additional('key', aad))
  }

  return {
    async seal(text, aad) {
      const dataKey = crypto.getRandomValues(new Uint8Array(DATA_KEY_BYTES))
      const body = await encrypt(await aes(dataKey, 'encrypt'), utf8(text), additional('text', aad))
      const wrapped = await wrap(dataKey, aad)
      dataKey.fill(0)
      return write({ keyId: current.id, wrapped, body })
    },
    async open(sealed, aad) {
      const parts = read(sealed)
      const dataKey = await dataKeyOf(parts, aad)
      const text = await decrypt(await aes(dataKey, 'decrypt'), parts.body, additional('text', aad))
      dataKey.fill(0)
      return decoder.decode(text)
    },
    async rewrap(sealed, aad) {
      const parts = read(sealed)
      if (parts.keyId === current.id) return sealed
      const dataKey = await dataKeyOf(parts, aad)
      const wrapped = await wrap(dataKey, aad)
      dataKey.fill(0)
      return write({ ...parts, keyId: current.id, wrapped })
    },
    isCurrent: sealed => read(sealed).keyId === current.id,
  }
}

interface Parts {
  keyId: string
  wrapped: Uint8Array<ArrayBuffer>
  body: Uint8Array<ArrayBuffer>
}

function write({ keyId, wrapped, body }: Parts): string {
  return [VERSION, keyId, toBase64Url(wrapped), toBase64Url(body)].join('.')
}

function read(sealed: string): Parts {
  const [version, keyId, wrapped, body, ...more] = sealed.split('.')
  if (version !== VERSION || !keyId || wrapped === undefined || body === undefined || more.length > 0) {
    throw new VaultError('not_sealed', 'expected a sealed text')
  }
  try {
    return { keyId, wrapped: fromBase64(wrapped), body: fromBase64(body) }
  } catch (cause) {
    throw new VaultError('broken', 'the sealed text is damaged', { cause })
  }
}

/** Canonical JSON: two places never have the same bytes, as they could with the parts just put together. */
function additional(part: 'key' | 'text', { tenantId, recordId, field }: VaultAad): Uint8Array<ArrayBuffer> {
  return utf8(canonicalize(['waybill/sealed/v1', part, tenantId, recordId, field]))
}

function aes(key: Uint8Array<ArrayBuffer>, use: 'encrypt' | 'decrypt'): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', key, 'AES-GCM', false, [use])
}

async function encrypt(
  key: CryptoKey,
  plain: Uint8Array<ArrayBuffer>,
  additionalData: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES))
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData }, key, plain)
  return concat(iv, new Uint8Array(sealed))
}

async function decrypt(
  key: CryptoKey,
  sealed: Uint8Array<ArrayBuffer>,
  additionalData: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const iv = sealed.slice(0, NONCE_BYTES)
  try {
    const plain = await crypto.subtle.decrypt({ name: 'AES-GCM', iv, additionalData }, key, sealed.slice(NONCE_BYTES))
    return new Uint8Array(plain)
  } catch (cause) {
    const message = 'the sealed text does not open: it was changed, or moved from another record'
    throw new VaultError('broken', message, { cause })
  }
}

/** The vault of this process, or undefined where no master key was given. */
export type Sealing = () => Promise<Vault | undefined>

/** The vault for something that is about to be stored; a refusal that says what is missing where there is none. */
export async function vaultToStore(sealing: Sealing, what: string): Promise<Vault> {
  const vault = await sealing()
  if (vault) return vault
  const message = `${what} cannot be stored: this service was started without a master key (PLATFORM_MASTER_KEY)`
  throw new ApiError('validation_failed', message)
}
