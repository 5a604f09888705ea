import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../scripts/bench/free-port.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Node, NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { Session, TurnReply } from '../../shared/wire/runtime/session.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { sseReader } from '../runtime/sse.ts'
import { cluster, type Instance } from './cluster.ts'
import { balancer, nodePool } from './node-pool.ts'

const here = await sqldAvailable()

describe.runIf(here)('two control planes on one libSQL server, and a node that has dialled one of them', () => {
  let sqld: Sqld
  let group: Awaited<ReturnType<typeof cluster>>
  let tunnel: Awaited<ReturnType<typeof balancer>>
  let pool: Awaited<ReturnType<typeof nodePool>>
  let dialled: Instance
  let other: Instance
  beforeAll(async () => {
    sqld = await startSqld()
    const ports = [await freePort(), await freePort()]
    tunnel = await balancer(ports)
    group = await cluster(sqld.primaryUrl, 2, (number, origin) => ({
      PLATFORM_TUNNEL_BIND: `127.0.0.1:${ports[number]}`,
      PLATFORM_EMBEDDED_NODE: 'off',
      PLATFORM_PEER_URL: origin,
    }))
    dialled = group.instances[0]!
    other = group.instances[1]!
    pool = await nodePool(1, tunnel.url)
    const made = await json<NodeCreated>(201, 'POST', '/v1/nodes', { name: 'one' })
    pool.nodes[0]!.start(made.enrolToken)
    await until(async () => (await json<Node[]>(200, 'GET', '/v1/nodes'))[0]?.status === 'online')
    const manifest = { model: 'demo/echo', tools: ['wait', 'wait_signal'], approvals: { tools: ['wait'] } }
    await json(201, 'POST', '/v1/agents', { name: 'worker', manifest })
  }, 120_000)
  afterAll(async () => {
    await pool?.close()
    await group?.close()
    await tunnel?.close()
    await sqld?.stop()
  })

  async function json<T>(status: number, method: string, path: string, body?: object, at = other): Promise<T> {
    const told = await group.call(at, method, path, body)
    if (told?.status !== status) throw new Error(`${method} ${path}: ${told?.status} ${told?.text}`)
    return JSON.parse(told.text === '' ? 'null' : told.text) as T
  }
  async function until(is: () => Promise<boolean>): Promise<void> {
    for (const end = performance.now() + 60_000; !(await is()); ) {
      if (performance.now() > end) {
        throw new Error(`this did not come to be: ${is}\n${[...group.said.slice(-5), ...pool.said.slice(-5)].join('')}`)
      }
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }
  const start = (prompt: string) => json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt } })
  const ended = (id: string) =>
    until(async () => isTerminal((await json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)).status))

  it('do the same for whoever asks either, also when the node comes to the other one', async () => {
    const { id } = await start('/call wait {"seconds":0}')
    const answer = await fetch(`${other.origin}/v1/runs/${id}/events`, { headers: group.headers() })
    const heard = sseReader(answer.body!).all()
    let approval: Approval | undefined
    await until(async () => {
      approval = (await json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`))[0]
      return approval !== undefined
    })
    expect(approval).toMatchObject({ action: { name: 'wait', arguments: { seconds: 0 } } })
    await json(200, 'POST', `/v1/approvals/${approval!.id}/approve`, {})
    await ended(id)
    const journal = await json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
    expect((await heard).map(event => event.id)).toEqual(journal.events.map(({ seq }) => String(seq)))
    const receipt = await json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
    expect(await json<VerifyResult>(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal })).toMatchObject({
      valid: true,
      checks: { signature: 'ok', journal: 'ok', record: 'ok' },
    })
    const session = await json<Session>(201, 'POST', '/v1/sessions', { agentName: 'worker' })
    const say = (content: string) => json<TurnReply>(200, 'POST', `/v1/sessions/${session.id}/messages`, { content })
    expect((await say('hello')).text).toContain('hello')
    const open = await start('/call wait_signal {"name":"go"}')
    await until(async () => (await json<JournalExport>(200, 'GET', `/v1/runs/${open.id}/journal`)).eventCount === 3)

    const forged = await fetch(`${other.origin}/internal/peer`, { method: 'POST', body: new Uint8Array(100) })
    expect([forged.status, await forged.json()]).toMatchObject([401, { code: 'unauthorized' }])

    await dialled.stop('SIGKILL')
    const gone = await group.call(other, 'GET', `/v1/runs/${id}`)
    expect([gone?.status, JSON.parse(gone?.text ?? '{}')]).toMatchObject([503, { code: 'node_offline' }])
    tunnel.spread()
    await until(async () => (await group.call(other, 'GET', `/v1/runs/${id}`))?.status === 200)
    await json(204, 'POST', `/v1/runs/${open.id}/signals/go`, { value: 'green' })
    await ended(open.id)
    expect((await say('again')).text).toContain('again')

    // The one that was killed asks the other one now.
    await dialled.start()
    const run = await json<Run>(200, 'GET', `/v1/runs/${open.id}`, undefined, dialled)
    expect(run.output).toMatchObject({ result: expect.stringContaining('green') })
  }, 180_000)
})
