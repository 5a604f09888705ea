import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { api } from './api.ts'
import { type NodeFixture, nodeFixture, until } from './node-fixture.ts'

it('four nodes that come to a new pool at once are all enrolled, under one key of the pool', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-enrolment-'))
  const control = await api({
    url: join(folder, 'control.db'),
    masterKey: new Uint8Array(32).fill(7),
    embeddedNode: false,
  })
  const nodes: NodeFixture[] = []
  try {
    const names = ['one', 'two', 'three', 'four']
    nodes.push(...(await Promise.all(names.map(name => nodeFixture(control, folder, { name })))))
    const keys = new Set(nodes.map(({ identity }) => Buffer.from(identity.poolKeys.publicKey).toString('hex')))
    expect(keys.size).toBe(1)
    await until(async () => {
      const known = await control.json<{ status: string }[]>(200, 'GET', '/v1/nodes')
      return known.every(({ status }) => status === 'online') && known.length === 4
    }, 'all are online')
  } finally {
    for (const node of nodes) await node.close()
    await control.close()
    await rm(folder, { recursive: true, force: true })
  }
})
