import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { auditLog } from './log.ts'
import { egressAudit } from './run-entries.ts'

it('what leaves a sandbox, and what may not, stands in the chain of its tenant', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'runtime', runtimeSteps)
  const log = auditLog({ db, now: () => new Date(), newId: uuidv7 })
  const told = egressAudit(log)
  const run = { id: uuidv7(), tenantId: 'default' }
  await told(run, { allowed: true, method: 'CONNECT', host: 'pypi.org', port: 443 })
  await told(run, { allowed: false, method: 'GET', host: 'a\ud800b', port: 80, reason: 'no rule names it' })
  expect(await log.list('default', { limit: 10, after: undefined })).toMatchObject([
    {
      action: 'sandboxEgress',
      actor: run.id,
      target: 'GET a\ufffdb:80',
      outcome: 'refused',
      reason: 'no rule names it',
    },
    { action: 'sandboxEgress', via: 'sandbox', target: 'CONNECT pypi.org:443', outcome: 'done' },
  ])
  expect(await log.verify('default')).toMatchObject({ valid: true, entries: 2 })
  db.close()
})
