import { auditEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/audit.ts'
import { type Operation, operation } from '../http/operation.ts'
import { pageOf } from '../http/page.ts'
import type { AuditLog } from './log.ts'

export interface AuditDeps {
  audit: Pick<AuditLog, 'list' | 'verify'>
}

/** Who changed how the tenant is set up, and whether that record is whole. */
export function auditOperations({ audit }: AuditDeps): Operation[] {
  return [
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const entries = await audit.list(call.principal.tenantId, page)
      return page.cut(entries, ({ seq }) => ({ at: seq, id: String(seq) }))
    }),
    operation(endpoints.verify, ({ principal, query: { seq, hash } }) => {
      const noted = { ...(seq !== undefined && { seq }), ...(hash !== undefined && { hash }) }
      return audit.verify(principal.tenantId, noted)
    }),
  ]
}
