import { RunFailure } from '../execution/failure.ts'
import type { SecretUse } from '../secrets/binding.ts'
import type { SecretStore } from '../secrets/store.ts'
import type { Act, AuditLog } from './log.ts'

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
