import { Hono } from 'hono'
import { auditVerifyQuery } from '../../shared/wire/runtime/audit.ts'
import { pageQuery } from '../../shared/wire/runtime/conventions.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import type { AuditLog } from './log.ts'

export interface AuditDeps {
  audit: Pick<AuditLog, 'list' | 'verify'>
}

/** Who changed how the tenant is set up, and whether that record is whole. */
export function auditRoute({ audit }: AuditDeps) {
  return new Hono<RuntimeHttpEnv>()
    .get('/v1/audit-log', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const entries = await audit.list(c.get('principal').tenantId, page)
      return c.json(page.cut(entries, ({ seq }) => ({ at: seq, id: String(seq) })))
    })
    .get('/v1/audit-log/verify', async c => {
      const { seq, hash } = readQuery(c, auditVerifyQuery)
      const noted = { ...(seq !== undefined && { seq }), ...(hash !== undefined && { hash }) }
      return c.json(await audit.verify(c.get('principal').tenantId, noted))
    })
}
