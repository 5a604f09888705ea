import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { storableText } from '../../shared/sql/sql-values.ts'
import { emailKey } from '../auth/dashboard/email-key.ts'
import type { Shown } from './request-route.ts'

const WHOSE: Record<Shown | 'tenant', string> = {
  key: 'select tenant_id from api_keys where hash = ?',
  login: 'select tenant_id from logins join users on users.id = logins.user_id where logins.hash = ?',
  link: 'select tenant_id from user_links join users on users.id = user_links.user_id where user_links.hash = ?',
  oauthState: 'select tenant_id from oauth_rounds where state_hash = ?',
  enrolToken: 'select tenant_id from nodes where enrol_hash = ?',
  nodeToken: 'select tenant_id from node_tokens join nodes on nodes.id = node_tokens.node_id where hash = ?',
  nodeId: 'select tenant_id from nodes where id = ?',
  tenant: 'select id as tenant_id from tenants where id = ?',
}

/** The tenant of something that a caller shows, as one shard knows it. */
export async function tenantIn(db: Db, shown: Shown | 'tenant', value: string): Promise<string | undefined> {
  const found = await db.execute({ sql: WHOSE[shown], args: [storableText(value)] })
  return rowsOf<{ tenant_id: string }>(found)[0]?.tenant_id
}

/** The tenants of a shard in which a person with this e-mail may log in. */
export async function tenantsOfEmail(db: Db, email: string): Promise<string[]> {
  const sql = 'select tenant_id from users where email = ? order by created_ms, id'
  const found = await db.execute({ sql, args: [storableText(emailKey(email))] })
  return rowsOf<{ tenant_id: string }>(found).map(({ tenant_id }) => tenant_id)
}
