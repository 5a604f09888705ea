import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { toBase64Url, utf8 } from '../../../shared/sign/bytes.ts'
import { equalSecrets } from '../../../shared/sign/equal.ts'
import { newToken } from './login-access.ts'

export const DEVICE_COOKIE = 'wb_device'

/**
 * Browsers in which a person has logged in before. Their tries are counted by themselves, so that a stranger who sends wrong passwords for
 * a known e-mail keeps no owner out. A device is a random id and its MAC for one e-mail: it opens nothing without the password.
 */
export function knownDevices(secret: () => Promise<string>) {
  const macOf = async (id: string, email: string) =>
    toBase64Url(hmac(sha256, utf8(await secret()), utf8(`waybill/device/v1\n${id}\n${email}`)))
  return {
    /** What a browser keeps after a login. */
    async make(email: string): Promise<string> {
      const id = newToken()
      return `${id}.${await macOf(id, email)}`
    },

    /** The id of a device that has logged in as this person. */
    async of(cookie: string | undefined, email: string): Promise<string | undefined> {
      const [id, mac, more] = cookie?.split('.') ?? []
      if (id === undefined || mac === undefined || more !== undefined) return undefined
      return equalSecrets(mac, await macOf(id, email)) ? id : undefined
    },
  }
}
