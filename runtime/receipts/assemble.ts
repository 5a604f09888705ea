import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { CurveKeys } from '../../shared/sign/curve-keys.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { Records } from '../vault/records.ts'
import type { Sealing } from '../vault/vault.ts'
import { keyStore } from './key-store.ts'
import { type ReceiptService, type ReceiptServiceDeps, receiptService } from './service.ts'
import { signingKeys } from './signing-keys.ts'
import { receiptStore } from './store.ts'

export interface ReceiptingOptions extends Pick<ReceiptServiceDeps, 'versionOf' | 'runOf' | 'remoteRun' | 'log'> {
  db: Db
  records: Records
  clock: Clock
  metrics: Metrics
  sha256: Sha256
  curveKeys: CurveKeys
  sealing: Sealing
  seed?: Uint8Array<ArrayBuffer> | undefined
}

/** Receipts over one store: the keys, the journal as it stands, and what is said of both. */
export function assembleReceipts({
  db,
  records,
  clock,
  metrics,
  sha256,
  curveKeys,
  sealing,
  seed,
  ...rest
}: ReceiptingOptions): ReceiptService {
  const keys = keyStore(db)
  return receiptService({
    keys,
    sha256,
    now: clock.now,
    ...rest,
    store: receiptStore(db, records, sha256),
    signing: signingKeys({ keys, sealing, signer: curveKeys.signer, clock, seed }),
    issued: metrics.counter('waybill_receipts_issued_total', 'Receipts that were signed.', [{}]),
  })
}
