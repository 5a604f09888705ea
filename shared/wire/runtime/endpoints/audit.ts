import { z } from 'zod'
import { listOf, ok } from '../../answers.ts'
import { endpoint } from '../../endpoint.ts'
import { auditEntry, auditVerified, auditVerifyQuery } from '../audit.ts'
import { pageQuery } from '../conventions.ts'
import { LIST } from './errors.ts'

// Who may see the keys of a tenant may see what was done with them.
const read = { method: 'GET', tag: 'Audit log', auth: 'bearer', scopes: ['keys:read'] } as const

export const auditEndpoints = {
  list: endpoint({
    id: 'listAuditLog',
    path: '/v1/audit-log',
    summary: 'Administrative acts of the tenant, newest first',
    ...read,
    query: pageQuery,
    responses: listOf(z.array(auditEntry)),
    errors: LIST,
  }),
  verify: endpoint({
    id: 'verifyAuditLog',
    path: '/v1/audit-log/verify',
    summary: 'Whether the chain of the audit log holds',
    ...read,
    query: auditVerifyQuery,
    responses: ok(auditVerified),
    errors: LIST,
  }),
}
