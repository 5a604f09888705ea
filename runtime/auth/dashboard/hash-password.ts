import type { DashboardDeps } from './deps.ts'
import type { UserRow } from './user-store.ts'

export type HashPassword = ReturnType<typeof hashPassword>

/** Accounts with one e-mail share a salt, so that a login is one derivation in however many tenants the e-mail is known. */
export function hashPassword({ users, passwords }: Pick<DashboardDeps, 'users' | 'passwords'>) {
  return async (user: Pick<UserRow, 'id' | 'email'>, password: string): Promise<string> =>
    passwords.hash(password, await users.passwordBeside(user))
}
