import { expect, it, onTestFinished } from 'vitest'
import type { FoundModel } from '../runtime/execution/models/model.ts'
import type { Receipt } from '../shared/wire/runtime/receipt.ts'
import type { Run } from '../shared/wire/runtime/run.ts'
import { sqldAvailable, startSqld } from './backends/sqld.ts'
import { api } from './runtime/api.ts'

/** A service over a server, with a run whose second model call is open. */
async function underWay() {
  const server = await startSqld()
  onTestFinished(() => server.stop())
  const [second, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let asked = 0
  const model: FoundModel = {
    id: 'test/model',
    async ask() {
      asked++
      if (asked === 2) {
        second.resolve()
        await go.promise
      }
      const spent = { tokensIn: 1, tokensOut: 1, costNano: 2 }
      const toolCalls = asked === 1 ? [{ id: 'c1', name: 'wait', arguments: { seconds: 0 } }] : []
      return { text: 'x', toolCalls, stop: 'end', provider: 'test', model: 'test/model', spent }
    },
  }
  const on = await api({
    url: server.primaryUrl,
    masterKey: new Uint8Array(32).fill(9),
    models: { find: async () => model },
  })
  onTestFinished(() => on.close())
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { tools: ['wait'] } })
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'hi' } })
  await second.promise
  const get = () => on.json<Run>(200, 'GET', `/v1/runs/${id}`)
  return { ...on, id, get, go: go.resolve, asked: () => asked }
}

if (await sqldAvailable()) {
  it.each([
    [
      'lost its last commits',
      ['delete from events where run_id = ? and seq > 2', 'update runs set event_count = 2 where id = ?'],
    ],
    ['is from before the claim', ['update runs set epoch = epoch - 1 where id = ?']],
  ])(
    'a server that %s under a run: it is set aside and signs nothing until it is resumed',
    async (_, statements) => {
      const { db, id, get, go, json, asked } = await underWay()
      await db.write(statements.map(sql => ({ sql, args: [id] })))
      go()
      await expect
        .poll(async () => (await get()).parked?.reason ?? (await get()).status, { timeout: 10_000 })
        .toBe('poisoned')
      expect([(await get()).status, asked()]).toEqual(['waiting', 2])
      await json(409, 'GET', `/v1/runs/${id}/receipt`)
      await json(204, 'POST', `/v1/runs/${id}/signals/resume`)
      await expect.poll(async () => (await get()).status, { timeout: 10_000 }).toBe('succeeded')
      const receipt = await json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
      expect(await json(200, 'POST', '/v1/runs/receipts/verify', receipt)).toMatchObject({
        valid: true,
        checks: { signature: 'ok', journal: 'ok', record: 'ok' },
      })
    },
    30_000,
  )
}
