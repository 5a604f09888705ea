import type { EgressDecision } from '../execution/sandbox/sandboxes.ts'
import type { Act, AuditLog } from './log.ts'

/** What left a sandbox, or was to leave it, as entries of its tenant's log: what cannot be written down does not leave. */
export function egressAudit(audit: Pick<AuditLog, 'intend' | 'done'>) {
  return async (run: { id: string; tenantId: string }, decision: EgressDecision): Promise<void> => {
    const { allowed, method, host, port, reason } = decision
    const act: Act = {
      tenantId: run.tenantId,
      actor: run.id,
      via: 'sandbox',
      action: 'sandboxEgress',
      target: `${method} ${host}:${port}`.slice(0, 512).toWellFormed(),
    }
    const intent = await audit.intend(act)
    await audit.done(intent, act, {
      outcome: allowed ? 'done' : 'refused',
      reason: reason?.slice(0, 512).toWellFormed(),
    })
  }
}
