import { scryptAsync } from '@noble/hashes/scrypt.js'
import { fromBase64, toBase64, utf8 } from '../../shared/sign/bytes.ts'
import { equalSecrets } from '../../shared/sign/equal.ts'

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

/** Passwords as PHC strings (contract §13). The text is brought to one Unicode form, as keyboards differ in theirs. */
export function passwords(scrypt: Scrypt = portableScrypt) {
  const derive = (password: string, salt: Uint8Array, cost: ScryptCost) =>
    scrypt(utf8(password.normalize('NFKC')), salt, HASH_BYTES, cost)

  return {
    async hash(password: string): Promise<string> {
      const salt = crypto.getRandomValues(new Uint8Array(SALT_BYTES))
      const hash = await derive(password, salt, COST)
      return `$scrypt$ln=${Math.log2(COST.N)},r=${COST.r},p=${COST.p}$${unpadded(salt)}$${unpadded(hash)}`
    },
    /** Takes as long for an unknown person (`undefined`) as for a known one, so that the time does not tell who exists. */
    async verify(password: string, stored: string | undefined): Promise<boolean> {
      const [, ln, r, p, salt = '', hash = ''] = PHC.exec(stored ?? NOBODY) ?? []
      if (ln === undefined) throw new TypeError('expected a scrypt hash in PHC form')
      const cost = { N: 2 ** Number(ln), r: Number(r), p: Number(p) }
      const derived = await derive(password, fromBase64(salt), cost)
      return equalSecrets(unpadded(derived), hash) && stored !== undefined
    },
  }
}

function unpadded(bytes: Uint8Array): string {
  return toBase64(bytes).replace(/=+$/, '')
}
