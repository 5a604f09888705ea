import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../scripts/bench/free-port.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Node, NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { cluster } from './cluster.ts'
import { balancer, nodePool } from './node-pool.ts'

/** 2,000 is what has to hold; a few are enough to see each time that it still works. */
const RUNS = Number(process.env.WAYBILL_TOPOLOGY_RUNS || 24)
const CLIENTS = RUNS > 500 ? 24 : 8
const here = await sqldAvailable()
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

describe.runIf(here)('three control planes and four nodes of one pool on one libSQL server', () => {
  let sqld: Sqld
  let group: Awaited<ReturnType<typeof cluster>>
  let tunnel: Awaited<ReturnType<typeof balancer>>
  let pool: Awaited<ReturnType<typeof nodePool>>
  beforeAll(async () => {
    sqld = await startSqld()
    const ports = [await freePort(), await freePort(), await freePort()]
    tunnel = await balancer(ports)
    // Two of them pass on to each other; the third is as it is without, or while that is being introduced.
    group = await cluster(sqld.primaryUrl, 3, (number, origin) => ({
      PLATFORM_TUNNEL_BIND: `127.0.0.1:${ports[number]}`,
      PLATFORM_EMBEDDED_NODE: 'off',
      ...(number < 2 && { PLATFORM_PEER_URL: origin }),
    }))
    pool = await nodePool(4, tunnel.url)
    // The key of a pool is with its nodes: who enrols must come to where one of them is connected.
    for (const [number, node] of pool.nodes.entries()) {
      const made = await surely('POST', '/v1/nodes', { name: `node-${number}` })
      node.start((JSON.parse(made.text) as NodeCreated).enrolToken)
      await until(
        async () => (await json<Node[]>('/v1/nodes')).filter(({ status }) => status === 'online').length > number,
      )
    }
    tunnel.spread()
  }, 120_000)
  afterAll(async () => {
    await pool?.close()
    await group?.close()
    await tunnel?.close()
    await sqld?.stop()
  })

  /** The same question to each instance until one answers: what a node has may be known only where that node is connected. */
  async function surely(method: string, path: string, body?: object, key?: string) {
    for (let tries = Math.floor(Math.random() * 3); ; tries++) {
      const up = group.instances.filter(({ running }) => running)
      const told = await group.call(up[tries % up.length]!, method, path, body, key ? { 'idempotency-key': key } : {})
      const open = told?.status === 409 && told.text.includes('idempotency_in_progress')
      if (told && told.status < 500 && !open) return told
      if (tries > 900)
        throw new Error(
          `${method} ${path}: ${told?.status} ${told?.text}\n${[...group.said.slice(-5), ...pool.said.slice(-5)].join('')}`,
        )
      if (tries % 3 === 2) await pause(100)
    }
  }
  const json = async <T>(path: string) => JSON.parse((await surely('GET', path)).text) as T

  async function until(is: () => Promise<boolean>, ms = 60_000): Promise<void> {
    for (const end = performance.now() + ms; !(await is()); await pause(150)) {
      if (performance.now() > end)
        throw new Error(`this did not come to be: ${is}\n${[...group.said.slice(-5), ...pool.said.slice(-5)].join('')}`)
    }
  }

  it('end every run once, balance every budget and sign every receipt while both are killed at random', async () => {
    const manifest = { model: 'demo/echo', tools: ['wait'] }
    for (const name of ['a', 'b', 'c', 'd']) {
      expect((await surely('POST', '/v1/agents', { name, manifest })).status).toBe(201)
      expect((await surely('PUT', `/v1/agents/${name}/budget`, { maxRunsPerDay: RUNS })).status).toBe(200)
    }
    let over = false
    const kills = { controls: 0, nodes: 0 }
    const killing = (async () => {
      while (!over) {
        await pause(RUNS > 500 ? 4000 + Math.random() * 4000 : 1000 + Math.random() * 1500)
        if (over) break
        if (Math.random() < 0.5) {
          const victim = group.instances[Math.floor(Math.random() * 3)]!
          await victim.stop('SIGKILL')
          await victim.start()
          kills.controls++
        } else {
          const victim = pool.nodes[Math.floor(Math.random() * 4)]!
          await victim.kill()
          await pause(300)
          victim.start()
          kills.nodes++
        }
      }
    })()

    const began = performance.now()
    const ids = new Map<string, string>()
    const queue = Array.from({ length: RUNS }, (_, number) => number)
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (let number = queue.pop(); number !== undefined; number = queue.pop()) {
          const agentName = 'abcd'[number % 4]!
          const input = { prompt: '/call*2 wait {"seconds":0}' }
          const made = await surely('POST', '/v1/runs', { agentName, input }, `run-${number}`)
          expect(made.status, made.text).toBe(201)
          ids.set((JSON.parse(made.text) as Run).id, agentName)
        }
      }),
    )
    expect(ids.size).toBe(RUNS)
    const runs: Run[] = []
    const waiting = [...ids.keys()]
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
          let run: Run | undefined
          await until(async () => {
            run = await json<Run>(`/v1/runs/${id}?fields=summary`)
            return isTerminal(run.status)
          }, 240_000)
          runs.push(run!)
        }
      }),
    )
    const tookMs = performance.now() - began
    over = true
    await killing
    expect(runs.filter(({ status }) => status !== 'succeeded').map(({ status, error }) => ({ status, error }))).toEqual(
      [],
    )
    expect(new Set(runs.map(({ nodeId }) => nodeId)).size).toBe(4)

    for (const name of ['a', 'b', 'c', 'd']) {
      const own = runs.filter(({ agentName }) => agentName === name)
      const tokens = own.reduce((sum, { tokensIn, tokensOut }) => sum + tokensIn + tokensOut, 0)
      const usage = await json<UsageItem[]>(`/v1/usage?groupBy=agent&agentName=${name}`)
      expect(usage.map(row => [row.runs, row.tokensIn + row.tokensOut])).toEqual([[own.length, tokens]])
      const budget = await json<{ today: { tokens: number } }>(`/v1/agents/${name}/budget`)
      expect(budget.today).toMatchObject({ runs: own.length, reserved: { tokens: 0, costUsd: 0 } })
      expect(budget.today.tokens).toBeGreaterThanOrEqual(tokens)
    }
    const all = [...ids.keys()]
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (let id = all.pop(); id !== undefined; id = all.pop()) {
          const journal = await json<JournalExport>(`/v1/runs/${id}/journal`)
          expect(journal.events.map(({ seq }) => seq)).toEqual(journal.events.map((_, at) => at + 1))
          const completed = journal.events.filter(({ kind }) => kind === 'step_completed').map(({ stepId }) => stepId)
          expect(new Set(completed).size).toBe(completed.length)
          const receipt = await json<Receipt>(`/v1/runs/${id}/receipt`)
          const verdict = (await surely('POST', '/v1/runs/receipts/verify', { receipt, journal })).text
          expect(JSON.parse(verdict)).toMatchObject({
            valid: true,
            checks: { signature: 'ok', journal: 'ok', record: 'ok' },
          })
        }
      }),
    )
    console.log(
      `${RUNS} runs on 3 control planes and 4 nodes in ${Math.round(tookMs / 1000)} s, ` +
        `${kills.controls} control planes and ${kills.nodes} nodes killed; checked after ${Math.round((performance.now() - began) / 1000)} s`,
    )
  }, 1_200_000)
})
