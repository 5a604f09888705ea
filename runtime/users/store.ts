import type { InStatement } from '@libsql/client/web'
import { type Db, readRow, rowsOf } from '../../shared/sql/db.ts'
import { dbFault } from '../../shared/sql/db-fault.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import type { Person, PersonPatch } from '../../shared/wire/runtime/user.ts'
import { type StoredUser, toUser, toUserAnswer, type UserRow } from '../auth/dashboard/user-store.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'

export interface PersonRow extends UserRow {
  disabledMs: number | undefined
  loginMs: number | undefined
}

export interface NewLink {
  userId: string
  hash: string
  expiresMs: number
}

/** `login_ms` is null for a person without a login. */
type Stored = StoredUser & { login_ms: number | null }

const SELECT = 'select users.*, (select max(created_ms) from logins where user_id = users.id) as login_ms from users'

export type PersonStore = ReturnType<typeof personStore>

/** The people of a tenant, and the links with which they set their passwords. */
export function personStore(db: Db) {
  async function get(id: string): Promise<PersonRow | undefined> {
    const rows = rowsOf<Stored>(await db.execute({ sql: `${SELECT} where id = ?`, args: [storableText(id)] }))
    return rows[0] && toPerson(rows[0])
  }

  const linking = ({ userId, hash, expiresMs }: NewLink): InStatement => ({
    sql: 'insert or replace into user_links (user_id, hash, expires_ms) values (?, ?, ?)',
    args: [userId, hash, expiresMs],
  })

  return {
    get,

    async list(tenantId: string, page: PageOf): Promise<PersonRow[]> {
      const { where, order, args } = pageSql(page)
      const found = await db.execute({
        sql: `${SELECT} where tenant_id = ? ${where} ${order}`,
        args: [tenantId, ...args],
      })
      return readPage(page, rowsOf<Stored>(found), toPerson)
    },

    /** Stores a person without a password and their link, and the statements of `more`; false: the address is taken. */
    async add(user: Omit<UserRow, 'password'>, link: NewLink, more: InStatement[]): Promise<boolean> {
      const { id, tenantId, email, name, role, createdMs } = user
      try {
        await db.write([
          {
            sql: `insert into users (id, tenant_id, email, name, role, password, created_ms) values (?, ?, ?, ?, ?, '', ?)`,
            args: [id, tenantId, email, JSON.stringify(name), role, createdMs],
          },
          linking(link),
          ...more,
        ])
        return true
      } catch (error) {
        if (dbFault(error) !== 'statement') throw error
        const { rows } = await db.execute({
          sql: 'select 1 from users where email = ? and tenant_id = ?',
          args: [email, tenantId],
        })
        if (rows.length === 0) throw error
        return false
      }
    },

    async link(link: NewLink): Promise<void> {
      await db.execute(linking(link))
    },

    /** One transaction: who is disabled is out, with every login and link. */
    async update(id: string, { name, role, disabled }: PersonPatch, nowMs: number): Promise<PersonRow | undefined> {
      await db.write([
        {
          sql: `update users set name = coalesce(?2, name), role = coalesce(?3, role),
  disabled_ms = case ?4 when 1 then coalesce(disabled_ms, ?5) when 0 then null else disabled_ms end where id = ?1`,
          args: [
            id,
            name === undefined ? null : JSON.stringify(name),
            role ?? null,
            disabled === undefined ? null : Number(disabled),
            nowMs,
          ],
        },
        ...(disabled === true ? endings(id) : []),
      ])
      return get(id)
    },

    async remove(id: string): Promise<boolean> {
      const done = await db.write([...endings(id), { sql: 'delete from users where id = ?', args: [id] }])
      return done.at(-1)?.rowsAffected === 1
    },
  }
}

function endings(userId: string): InStatement[] {
  return ['logins', 'user_links'].map(name => ({ sql: `delete from ${name} where user_id = ?`, args: [userId] }))
}

function toPerson(row: Stored): PersonRow {
  return readRow(`person ${row.id}`, row, () => ({
    ...toUser(row),
    disabledMs: row.disabled_ms ?? undefined,
    loginMs: row.login_ms ?? undefined,
  }))
}

export function toPersonAnswer(row: PersonRow): Person {
  return {
    ...toUserAnswer(row),
    status: row.disabledMs !== undefined ? 'disabled' : row.password === '' ? 'invited' : 'active',
    ...(row.loginMs !== undefined && { lastLoginAt: new Date(row.loginMs).toISOString() }),
  }
}
