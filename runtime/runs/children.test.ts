import { describe, expect, it } from 'vitest'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { manifest } from '../../shared/wire/runtime/manifest.ts'
import { engineFixture } from '../execution/testing/engine-fixture.ts'
import { childRuns } from './children.ts'

describe('a run that another run starts', () => {
  it.each([
    ['goes on beside its parent', false, 'queued'],
    ['is cancelled where its parent was while it was being made', true, 'cancelled'],
  ])('%s', async (_what, isCancelled, status) => {
    const { engine, runs, create, close } = await engineFixture()
    const parent = await create({ prompt: 'hello' })
    const { start } = childRuns(
      {
        runs,
        cancel: (id, reason) => engine.end(id, { code: 'cancelled', ...(reason !== undefined && { reason }) }),
        findAgent: async name => ({ agentId: name, versionId: name, manifest: manifest.parse({}) }),
        async admit(_candidate, _id, make) {
          if (isCancelled) await engine.end(parent, { code: 'cancelled', reason: 'not needed' })
          return make({ statements: [], exceeded: false })
        },
        dayOf: ms => new Date(ms).toISOString().slice(0, 10),
        now: () => new Date(),
      },
      { id: parent, tenantId: 'default', depth: 0 },
    )
    const id = uuidv7()
    await start({ id, agentName: 'agent', input: {} })
    expect(await runs.get(id)).toMatchObject({ status, ...(isCancelled && { cancelReason: 'not needed' }) })
    await close()
  })
})
