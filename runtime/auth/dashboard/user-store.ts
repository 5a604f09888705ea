import type { InStatement } from '@libsql/client/web'
import { type Db, type RowOf, readRow, rowsOf, textIn } from '../../../shared/sql/db.ts'
import { storableText } from '../../../shared/sql/sql-values.ts'
import { type Role, roles, type User } from '../../../shared/wire/runtime/auth.ts'
import type { logins, tenants, users } from '../../schema/tables.ts'

export interface UserRow {
  id: string
  tenantId: string
  email: string
  name: string
  role: Role
  /** A PHC string; empty for a person who has set no password yet. */
  password: string
  createdMs: number
}

const SETUP_MS = 60 * 60 * 1000
/** A login ends this long after its last use, and after `MAX_LOGIN_MS` in any case. */
const IDLE_LOGIN_MS = 12 * 60 * 60 * 1000
export const MAX_LOGIN_MS = 7 * 24 * 60 * 60 * 1000
/** A login is written forward at most this often: each use would otherwise be a commit. */
const FORWARD_EVERY_MS = 5 * 60 * 1000

/** As the table has a person. */
export type StoredUser = RowOf<typeof users>

export type UserStore = ReturnType<typeof userStore>

/** People, their logins, and the token with which the first of them is made. Tokens are kept as digests. */
export function userStore(db: Db) {
  return {
    ...oneTimeTokens(db),
    ...loginStore(db),

    async hasOwner(): Promise<boolean> {
      const { rows } = await db.execute("select 1 from users where role = 'owner' limit 1")
      return rows.length > 0
    },

    /** Whether there is a person who could log in: people can be invited with a key before there is an owner. */
    async hasAnybody(): Promise<boolean> {
      const { rows } = await db.execute('select 1 from users limit 1')
      return rows.length > 0
    },

    /** Who may log in with this e-mail: one person in each tenant, or in the one that is named. */
    async accountsOf(email: string, tenantId?: string): Promise<UserRow[]> {
      const found = await db.execute({
        sql: `select * from users where email = ?1 and (?2 is null or tenant_id = ?2)
  and disabled_ms is null and password <> '' order by created_ms, id`,
        args: [storableText(email), tenantId === undefined ? null : storableText(tenantId)],
      })
      return rowsOf<StoredUser>(found).map(toUser)
    },

    /** The stored password of another account with the same e-mail, the oldest one's. */
    async passwordBeside({ email, id }: Pick<UserRow, 'email' | 'id'>): Promise<string | undefined> {
      const found = await db.execute({
        sql: `select password from users where email = ? and id <> ? and password <> '' order by created_ms, id limit 1`,
        args: [email, id],
      })
      return rowsOf<Pick<StoredUser, 'password'>>(found)[0]?.password
    },

    /** The names of the tenants of accounts, in the order of the accounts. */
    async tenantsOf(accounts: readonly UserRow[]): Promise<{ id: string; name: string }[]> {
      const found = await db.execute({
        sql: 'select id, name from tenants where id in (select value from json_each(?))',
        args: [JSON.stringify(accounts.map(({ tenantId }) => tenantId))],
      })
      const rows = rowsOf<Pick<RowOf<typeof tenants>, 'id' | 'name'>>(found)
      const names = new Map(rows.map(row => [row.id, textIn(row.name)]))
      return accounts.map(({ tenantId: id }) => ({ id, name: names.get(id) ?? id }))
    },
  }
}

/** The token that makes the first owner, and the links by which people set their passwords. */
function oneTimeTokens(db: Db) {
  return {
    /** A new one-time token replaces those that were never used and are over. */
    async addSetupToken(hash: string, nowMs: number): Promise<void> {
      await db.write([
        { sql: 'delete from setup_tokens where expires_ms <= ?', args: [nowMs] },
        { sql: 'insert into setup_tokens (hash, expires_ms) values (?, ?)', args: [hash, nowMs + SETUP_MS] },
      ])
    },

    async isSetupToken(hash: string, nowMs: number): Promise<boolean> {
      const { rows } = await db.execute({
        sql: 'select 1 from setup_tokens where hash = ? and expires_ms > ?',
        args: [hash, nowMs],
      })
      return rows.length > 0
    },

    /**
     * Makes the owner, and with it whatever `more` inserts, unless there is one by now, the token is over or another person of the tenant
     * has the e-mail. Answers whether it did; `more` may ask `exists (select 1 from users where id = …)`. The tokens end with it.
     */
    async setUp(user: UserRow, tokenHash: string, nowMs: number, more: InStatement[]): Promise<boolean> {
      const [made] = await db.write([
        {
          sql: `insert into users (id, tenant_id, email, name, role, password, created_ms)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7
where exists (select 1 from setup_tokens where hash = ?8 and expires_ms > ?7)
  and not exists (select 1 from users where role = 'owner' or (email = ?3 and tenant_id = ?2))`,
          args: [
            user.id,
            user.tenantId,
            user.email,
            JSON.stringify(user.name),
            user.role,
            user.password,
            nowMs,
            tokenHash,
          ],
        },
        ...more,
        "delete from setup_tokens where exists (select 1 from users where role = 'owner')",
      ])
      return made?.rowsAffected === 1
    },

    /** Whose link this is, if it is still good. */
    async userOfLink(hash: string, nowMs: number): Promise<UserRow | undefined> {
      const found = await db.execute({
        sql: `select users.* from user_links join users on users.id = user_links.user_id
where user_links.hash = ? and user_links.expires_ms > ? and users.disabled_ms is null`,
        args: [hash, nowMs],
      })
      const rows = rowsOf<StoredUser>(found)
      return rows[0] && toUser(rows[0])
    },

    /** Sets the password behind a link, once: the link and every login end with it. Of two at a time one gets true. */
    async acceptLink(userId: string, hash: string, password: string, nowMs: number): Promise<boolean> {
      const good = 'exists (select 1 from user_links where user_id = ?1 and hash = ?2 and expires_ms > ?3)'
      const [set] = await db.write([
        {
          sql: `update users set password = ?4 where id = ?1 and disabled_ms is null and ${good}`,
          args: [userId, hash, nowMs, password],
        },
        { sql: `delete from logins where user_id = ?1 and ${good}`, args: [userId, hash, nowMs] },
        { sql: 'delete from user_links where user_id = ? and hash = ?', args: [userId, hash] },
      ])
      return set?.rowsAffected === 1
    },
  }
}

/** The logins of people. */
function loginStore(db: Db) {
  return {
    /** False for a person who is disabled by now. */
    async addLogin(hash: string, userId: string, nowMs: number): Promise<boolean> {
      const [, made] = await db.write([
        { sql: 'delete from logins where expires_ms <= ?', args: [nowMs] },
        {
          sql: `insert into logins (hash, user_id, created_ms, expires_ms)
select ?1, id, ?3, ?4 from users where id = ?2 and disabled_ms is null`,
          args: [hash, userId, nowMs, nowMs + IDLE_LOGIN_MS],
        },
      ])
      return made?.rowsAffected === 1
    },

    /** Whose login it is, and keeps it alive. */
    async userOfLogin(hash: string, nowMs: number): Promise<UserRow | undefined> {
      const found = await db.execute({
        sql: `select users.*, logins.created_ms as login_ms, logins.expires_ms from logins
join users on users.id = logins.user_id where logins.hash = ? and logins.expires_ms > ? and users.disabled_ms is null`,
        args: [hash, nowMs],
      })
      const rows = rowsOf<StoredUser & { login_ms: number } & Pick<RowOf<typeof logins>, 'expires_ms'>>(found)
      const row = rows[0]
      if (row === undefined) return undefined
      const expiresMs = Math.min(nowMs + IDLE_LOGIN_MS, row.login_ms + MAX_LOGIN_MS)
      if (expiresMs - row.expires_ms >= FORWARD_EVERY_MS) {
        await db.execute({ sql: 'update logins set expires_ms = ? where hash = ?', args: [expiresMs, hash] })
      }
      return toUser(row)
    },

    async isLoggedIn(hash: string, nowMs: number): Promise<boolean> {
      const sql = `select 1 from logins join users on users.id = logins.user_id
        where logins.hash = ? and logins.expires_ms > ? and users.disabled_ms is null`
      return (await db.execute({ sql, args: [hash, nowMs] })).rows.length > 0
    },

    async endLogin(hash: string): Promise<void> {
      await db.execute({ sql: 'delete from logins where hash = ?', args: [hash] })
    },

    /** Changes the password and ends every other login of the person. */
    async setPassword(userId: string, password: string, keptLogin: string): Promise<void> {
      await db.write([
        { sql: 'update users set password = ? where id = ?', args: [password, userId] },
        { sql: 'delete from logins where user_id = ? and hash <> ?', args: [userId, keptLogin] },
      ])
    },
  }
}

export function toUser(row: StoredUser): UserRow {
  return readRow(`person ${row.id}`, row, () => {
    const role = roles.find(known => known === row.role)
    if (role === undefined) throw new TypeError(`a user has the unknown role ${row.role}`)
    return {
      id: row.id,
      tenantId: row.tenant_id,
      email: row.email,
      name: textIn(row.name),
      role,
      password: row.password,
      createdMs: row.created_ms,
    }
  })
}

/** What the wire shows of a person. */
export function toUserAnswer({ id, email, name, role, tenantId, createdMs }: UserRow): User {
  return { id, email, name, role, tenantId, createdAt: new Date(createdMs).toISOString() }
}

/** One person, one address: mail domains ignore case, and no provider of note tells local parts apart by it. */
export function emailKey(email: string): string {
  return storableText(email.trim().normalize('NFC').toLowerCase())
}
