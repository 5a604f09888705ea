import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { directory } from './directory.ts'
import { directorySteps } from './directory-steps.ts'

it('begins a move from where the tenant is, and one at a time', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'directory', directorySteps)
  const known = directory(db)
  for (const name of ['a', 'b', 'c']) await known.add({ name, url: `file:${name}`, state: 'open' }, 0)
  await known.learn({ tenantId: 't', shard: 'b' })
  // As where another command has moved it since this one looked.
  await known.beginMove({ tenantId: 't', from: 'a', to: 'b' }, 1)
  expect(await known.moves()).toEqual([])
  await known.beginMove({ tenantId: 't', from: 'b', to: 'c' }, 2)
  await known.beginMove({ tenantId: 't', from: 'b', to: 'a' }, 3)
  expect(await known.move('t')).toEqual({ tenantId: 't', from: 'b', to: 'c', state: 'copying' })
  await db.close()
})
