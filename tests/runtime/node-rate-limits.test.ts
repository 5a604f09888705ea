import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { FoundModel } from '../../runtime/execution/models/model.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { api } from './api.ts'
import { nodeFixture, until } from './node-fixture.ts'

it('a run on a node that waits for a rate limit says so, until its next call', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-node-limits-'))
  const masterKey = new Uint8Array(32).fill(7)
  const control = await api({ url: join(folder, 'control.db'), masterKey, embeddedNode: false })
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  const model: FoundModel = {
    id: 'test/limited',
    async ready({ show }) {
      await show(30_000)
      await gates[0].promise
      await show(undefined)
    },
    async ask() {
      await gates[1].promise
      const spent = { tokensIn: 1, tokensOut: 1, costNano: 0 }
      return { text: 'done', stop: 'end', provider: 'test', model: 'test/limited', toolCalls: [], spent }
    },
  }
  const node = await nodeFixture(control, folder, { name: 'one', models: { find: async () => model } })
  await control.json(201, 'POST', '/v1/agents', { name: 'limited', manifest: {} })
  const { id } = await control.json<Run>(201, 'POST', '/v1/runs', { agentName: 'limited', input: { prompt: 'x' } })
  const run = () => control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
  const waits = await until(async () => {
    const found = await run()
    return found.parked && found
  }, 'it waits')
  expect(waits).toMatchObject({ status: 'running', parked: { reason: 'rate_limit' } })
  const leftMs = Date.parse(waits.parked!.until!) - Date.now()
  expect(leftMs).toBeGreaterThan(10_000)
  expect(leftMs).toBeLessThanOrEqual(30_000)
  gates[0].resolve()
  await until(async () => (await run()).parked === undefined, 'it calls')
  gates[1].resolve()
  await until(async () => isTerminal((await run()).status), 'it ends')
  expect(await run()).toMatchObject({ status: 'succeeded' })
  await node.close()
  await control.close()
  await rm(folder, { recursive: true, force: true })
})
