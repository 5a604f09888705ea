import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { toBase64Url, utf8 } from '../../../shared/sign/bytes.ts'
import { equalSecrets } from '../../../shared/sign/equal.ts'
import { newToken } from './login-access.ts'

export const DEVICE_COOKIE = 'wb_device'

export interface Device {
  id: string
  /** The account that it has logged in to. */
  userId: string
}

/**
 * Browsers in which a person has logged in before. Their tries are counted by themselves, so that a stranger who sends wrong passwords for
 * a known e-mail keeps no owner out. A device is a random id, an account, and the MAC of both for one e-mail: it opens nothing without the
 * password, and stands for no other account with that e-mail, which may be another tenant's.
 */
export function knownDevices(secret: () => Promise<string>) {
  const macOf = async (id: string, userId: string, email: string) =>
    toBase64Url(hmac(sha256, utf8(await secret()), utf8(`waybill/device/v2\n${id}\n${userId}\n${email}`)))
  return {
    /** What a browser keeps after a login with it. */
    async make(email: string, userId: string): Promise<string> {
      const id = newToken()
      return `${id}.${userId}.${await macOf(id, userId, email)}`
    },

    /** The device of a cookie that was made for this e-mail. */
    async of(cookie: string | undefined, email: string): Promise<Device | undefined> {
      const [id, userId, mac, more] = cookie?.split('.') ?? []
      if (id === undefined || userId === undefined || mac === undefined || more !== undefined) return undefined
      return equalSecrets(mac, await macOf(id, userId, email)) ? { id, userId } : undefined
    },
  }
}
