import { RefusedError } from '../../shared/host/known-fault.ts'
import { nativeCurveKeys } from '../../shared/host/native-curve-keys.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { silentLog } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import { clockOfStore } from '../../shared/sql/server-clock.ts'
import type { ApiKey, ApiKeyCreated } from '../../shared/wire/runtime/auth.ts'
import type { Scope } from '../../shared/wire/runtime/scopes.ts'
import { type Act, auditLog } from '../audit-log/log.ts'
import { makeKey } from '../auth/keys/mint.ts'
import { keyStore, toApiKey } from '../auth/keys/store.ts'
import type { RuntimeEnv } from '../env.ts'
import { keyStore as receiptKeyStore } from '../receipts/key-store.ts'
import { signingKeys } from '../receipts/signing-keys.ts'
import { tenantStore } from '../tenants/store.ts'
import { checkMasterKey } from '../vault/canary.ts'
import { masterKey } from '../vault/master-key.ts'
import { vault } from '../vault/vault.ts'
import { masterKeyOf } from './master-key-file.ts'

export interface KeyOrder {
  tenantId: string
  name: string
  scopes: readonly Scope[]
  expiresMs: number | undefined
}

export interface KeyChest {
  create(order: KeyOrder): Promise<ApiKeyCreated>
  list(tenantId: string): Promise<ApiKey[]>
  /** A new key for receipts; answers its id. Running services sign with it within seconds. */
  rotateReceiptKey(): Promise<string>
  /** An API key, or one that receipts were signed with before a rotation: nothing that it signed counts any more. */
  revoke(id: string): Promise<void>
  close(): void | Promise<void>
}

/** The keys of one store. */
export function chestOf(env: RuntimeEnv, db: Db): Omit<KeyChest, 'close'> {
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
    async create({ tenantId, ...order }) {
      if ((await tenants.get(tenantId)) === undefined)
        throw new RefusedError(`there is no tenant with the id ${tenantId}`)
      const made = { ...order, id: uuidv7(), tenantId, createdMs: Date.now(), createdBy: 'command line' }
      const { statement, answer } = makeKey(keys, made)
      const of = { tenantId, action: 'createApiKey', target: '/v1/api-keys' }
      await audited(of, made.id, () => db.write([statement]))
      return answer
    },
    async list(tenantId) {
      const rows = await keys.list(tenantId, { limit: 1000, after: undefined })
      return rows.map(row => toApiKey(row, Date.now()))
    },
    async rotateReceiptKey() {
      if (env.PLATFORM_RECEIPT_KEY !== undefined) {
        throw new RefusedError('PLATFORM_RECEIPT_KEY is set: to rotate, start the service with another one')
      }
      const box = vault(await masterKey(await masterKeyOf(env, silentLog())))
      await checkMasterKey(db, box)
      const { signer } = nativeCurveKeys
      const clock = await clockOfStore(db)
      return signingKeys({ keys: receiptKeyStore(db), sealing: async () => box, signer, clock }).rotate()
    },
    async revoke(id) {
      const key = await keys.get(id)
      if (key === undefined) return revokeReceiptKey([db], id)
      const of = { tenantId: key.tenantId, action: 'revokeApiKey', target: `/v1/api-keys/${id}` }
      await audited(of, id, () => keys.revoke(id, Date.now()))
    },
  }
}

/** A key that receipts were signed with, in each of these stores. */
export async function revokeReceiptKey(stores: readonly Db[], id: string): Promise<void> {
  const keys = stores.map(receiptKeyStore)
  for (const store of keys) {
    const found = (await store.list()).find(({ keyId }) => keyId === id)
    if (found === undefined) throw new RefusedError(`there is no API key and no signing key with the id ${id}`)
    if (found.status === 'active')
      throw new RefusedError(
        `receipts are signed with the key ${id}: make a new one first, with \`runtime keys rotate\``,
      )
  }
  for (const store of keys) await store.revoke(id)
}
