import { readEnv } from '../../shared/env/read-env.ts'
import { nativeCurveKeys } from '../../shared/host/native-curve-keys.ts'
import { RefusedError } from '../../shared/host/refused-error.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { silentLog } from '../../shared/log/log.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { systemClock } from '../../shared/time/clock.ts'
import type { ApiKey, ApiKeyCreated } from '../../shared/wire/runtime/auth.ts'
import type { Scope } from '../../shared/wire/runtime/scopes.ts'
import { type Act, auditLog } from '../audit-log/log.ts'
import { makeKey } from '../auth/keys/mint.ts'
import { keyStore, toApiKey } from '../auth/keys/store.ts'
import { runtimeEnv } from '../env.ts'
import { keyStore as receiptKeyStore } from '../receipts/key-store.ts'
import { signingKeys } from '../receipts/signing-keys.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { tenantStore } from '../tenants/store.ts'
import { checkMasterKey } from '../vault/canary.ts'
import { masterKey } from '../vault/master-key.ts'
import { vault } from '../vault/vault.ts'
import { masterKeyOf } from './master-key-file.ts'
import { openStore } from './open.ts'

export interface KeyOrder {
  tenantId: string
  name: string
  scopes: readonly Scope[]
  expiresMs: number | undefined
}

export type KeyChest = Awaited<ReturnType<typeof openKeyChest>>

/** The API keys of a store, for an operator who may open the store itself: no key is asked for, and none limits what is made. */
export async function openKeyChest(vars: Record<string, string | undefined>, { create }: { create: boolean }) {
  const env = readEnv(runtimeEnv, vars)
  const db = await openStore(env, { create })
  await migrate(db, 'runtime', runtimeSteps)
  const keys = keyStore(db)
  const tenants = tenantStore(db)
  const audit = auditLog({ db, now: () => new Date(), newId: uuidv7 })

  /** Does an act and writes it into the audit log of its tenant, as the service does for those that come over HTTP. */
  async function audited(of: Pick<Act, 'tenantId' | 'action' | 'target'>, object: string, act: () => Promise<unknown>) {
    const whole: Act = { ...of, actor: 'command line', via: 'cli' }
    const intent = await audit.intend(whole)
    await act()
    await audit.done(intent, whole, { outcome: 'done', object })
  }

  return {
    async create({ tenantId, ...order }: KeyOrder): Promise<ApiKeyCreated> {
      if ((await tenants.get(tenantId)) === undefined)
        throw new RefusedError(`there is no tenant with the id ${tenantId}`)
      const made = { ...order, id: uuidv7(), tenantId, createdMs: Date.now(), createdBy: 'command line' }
      const { statement, answer } = makeKey(keys, made)
      const of = { tenantId, action: 'createApiKey', target: '/v1/api-keys' }
      await audited(of, made.id, () => db.write([statement]))
      return answer
    },
    async list(tenantId: string): Promise<ApiKey[]> {
      const rows = await keys.list(tenantId, { limit: 1000, after: undefined })
      return rows.map(row => toApiKey(row, Date.now()))
    },
    /** A new key for receipts; answers its id. Running services sign with it within seconds. */
    async rotateReceiptKey(): Promise<string> {
      if (env.PLATFORM_RECEIPT_KEY !== undefined) {
        throw new RefusedError('PLATFORM_RECEIPT_KEY is set: to rotate, start the service with another one')
      }
      const box = vault(await masterKey(await masterKeyOf(env, silentLog())))
      await checkMasterKey(db, box)
      const { signer } = nativeCurveKeys
      return signingKeys({ keys: receiptKeyStore(db), sealing: async () => box, signer, clock: systemClock }).rotate()
    },
    async revoke(id: string): Promise<void> {
      const key = await keys.get(id)
      if (key === undefined) throw new RefusedError(`there is no API key with the id ${id}`)
      const of = { tenantId: key.tenantId, action: 'revokeApiKey', target: `/v1/api-keys/${id}` }
      await audited(of, id, () => keys.revoke(id, Date.now()))
    },
    close: () => db.close(),
  }
}
