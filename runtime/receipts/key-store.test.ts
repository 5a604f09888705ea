import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { signer } from '../../shared/sign/ed25519.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { keyStore } from './key-store.ts'

const HOUR_MS = 3_600_000

it('a key that is replaced stays valid for the receipts that it signed while the clock was ahead', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  const keys = keyStore(db)
  const [first, second, third] = await Promise.all(
    [1, 2, 3].map(async n => ({ ...(await signer(new Uint8Array(32).fill(n))), sealedSeed: '' })),
  )
  const nowMs = Date.parse('2026-01-02T03:04:05Z')
  await keys.begin(first!, nowMs)
  await keys.rotate(second!, nowMs, nowMs + 60_000)
  await db.execute({ sql: "insert into receipts values ('r', 'default', ?, '{}')", args: [nowMs + HOUR_MS] })
  await keys.rotate(third!, nowMs, nowMs + 60_000)
  expect((await keys.list()).map(({ keyId, notAfter }) => [keyId, notAfter?.getTime()])).toEqual(
    expect.arrayContaining([
      [first!.keyId, nowMs + 60_000],
      [second!.keyId, nowMs + HOUR_MS],
      [third!.keyId, undefined],
    ]),
  )
  db.close()
})
