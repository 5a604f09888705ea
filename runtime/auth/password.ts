import { scryptAsync } from '@noble/hashes/scrypt.js'
import { fromBase64, toBase64, utf8 } from '../../shared/sign/bytes.ts'
import { equalSecrets } from '../../shared/sign/sha256.ts'

export interface ScryptCost {
  N: number
  r: number
  p: number
}

/** RFC 7914. A host may hand in its native one; all give equal bytes. */
export type Scrypt = (password: Uint8Array, salt: Uint8Array, bytes: number, cost: ScryptCost) => Promise<Uint8Array>

/** In JavaScript, for hosts without a native one: 0.45 s on a small machine where the native one takes 0.24 s. */
export const portableScrypt: Scrypt = (password, salt, bytes, cost) =>
  scryptAsync(password, salt, { ...cost, dkLen: bytes })

const COST: ScryptCost = { N: 2 ** 15, r: 8, p: 3 }
const SALT_BYTES = 16
const HASH_BYTES = 32
const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/

/** The password of no account, at the same cost as any. */
const NOBODY = `$scrypt$ln=15,r=8,p=3$${'A'.repeat(22)}$${'A'.repeat(43)}`

export type Passwords = ReturnType<typeof passwords>

/** Passwords as PHC strings (docs/spec/runtime.md §13). The text is brought to one Unicode form, as keyboards differ in theirs. */
export function passwords(scrypt: Scrypt = portableScrypt) {
  const derive = (password: string, salt: Uint8Array, cost: ScryptCost) =>
    scrypt(utf8(password.normalize('NFKC')), salt, HASH_BYTES, cost)

  /** The PHC string of a password on the salt and at the cost of another one. */
  async function onSaltOf(stored: string, password: string): Promise<string> {
    const [, ln, r, p, salt = ''] = PHC.exec(stored) ?? []
    if (ln === undefined) throw new TypeError('expected a scrypt hash in PHC form')
    const cost = { N: 2 ** Number(ln), r: Number(r), p: Number(p) }
    return `${saltOf(stored)}${unpadded(await derive(password, fromBase64(salt), cost))}`
  }

  return {
    /** With `other`, on the salt of that stored password: one derivation then compares with both. */
    async hash(password: string, other?: string): Promise<string> {
      if (other !== undefined) return onSaltOf(other, password)
      const salt = crypto.getRandomValues(new Uint8Array(SALT_BYTES))
      const hash = await derive(password, salt, COST)
      return `$scrypt$ln=${Math.log2(COST.N)},r=${COST.r},p=${COST.p}$${unpadded(salt)}$${unpadded(hash)}`
    },

    /**
     * Which of the stored passwords this one is. It takes one derivation for each salt among them and one for none, so that the time
     * does not tell who exists, nor of how many.
     */
    async compare(password: string, stored: readonly string[]): Promise<boolean[]> {
      const derived = new Map<string, string>()
      for (const one of stored.length === 0 ? [NOBODY] : stored) {
        if (!derived.has(saltOf(one))) derived.set(saltOf(one), await onSaltOf(one, password))
      }
      return stored.map(one => equalSecrets(derived.get(saltOf(one)) ?? '', one))
    },
  }
}

/** A PHC string without the hash at its end. */
function saltOf(stored: string): string {
  return stored.slice(0, stored.lastIndexOf('$') + 1)
}

function unpadded(bytes: Uint8Array): string {
  return toBase64(bytes).replace(/=+$/, '')
}
