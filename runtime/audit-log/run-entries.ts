import { RunFailure } from '../execution/failure.ts'
import type { EgressDecision } from '../execution/sandbox/sandboxes.ts'
import type { SecretUse } from '../secrets/binding.ts'
import type { SecretStore } from '../secrets/store.ts'
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

/** The way of a run to its secrets. A use that is refused is an entry of the tenant's log: a run may fail before its journal has a first step. */
export function auditedSecrets(audit: Pick<AuditLog, 'intend' | 'done'>, open: SecretStore['open']) {
  return async (run: { id: string; tenantId: string }, name: string, use: SecretUse): Promise<string | undefined> => {
    try {
      return await open(run.tenantId, name, use)
    } catch (error) {
      if (!(error instanceof RunFailure && error.code === 'secret_refused')) throw error
      const act: Act = {
        tenantId: run.tenantId,
        actor: run.id,
        via: 'run',
        action: 'secretUse',
        target: `secret/${name} for ${use.tool}`,
      }
      const intent = await audit.intend(act)
      await audit.done(intent, act, { outcome: 'refused', reason: error.message.slice(0, 512) })
      throw error
    }
  }
}
