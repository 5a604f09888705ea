import { sha256Hex } from '../../../shared/sign/sha256.ts'
import { newToken } from './login-access.ts'
import type { UserStore } from './user-store.ts'

/** A one-time token with which the first owner is made, for an hour; undefined once there is an owner. */
export function setupLinks(users: Pick<UserStore, 'hasOwner' | 'addSetupToken'>, now: () => Date) {
  return async (): Promise<string | undefined> => {
    if (await users.hasOwner()) return undefined
    const token = newToken()
    await users.addSetupToken(sha256Hex(token), now().getTime())
    return token
  }
}

/** Addresses that are listened on and that a browser cannot open. */
const EVERY_ADDRESS = /(?<=^https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=[:/]|$)/

/** The token stands behind the `#`, so that no server, proxy or log on the way sees it. */
export function setupLink(base: string, token: string): string {
  return `${base.replace(EVERY_ADDRESS, 'localhost').replace(/\/$/, '')}/setup#token=${token}`
}
