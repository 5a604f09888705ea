import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { cluster } from './cluster.ts'

const RUNS = Number(process.env.WAYBILL_SCALE_RUNS || 60)
const here = await sqldAvailable()

describe.runIf(here)('three instances on one libSQL server', () => {
  let sqld: Sqld
  let group: Awaited<ReturnType<typeof cluster>>
  beforeAll(async () => {
    sqld = await startSqld()
    group = await cluster(sqld.primaryUrl, 3)
  }, 120_000)
  afterAll(async () => {
    await group?.close()
    await sqld?.stop()
  })

  /** The same question to each instance until one answers. */
  async function surely(method: string, path: string, body?: object, headers?: Record<string, string>) {
    for (let tries = 0; ; tries++) {
      const up = group.instances.filter(({ running }) => running)
      const told = await group.call(up[tries % up.length]!, method, path, body, headers)
      // The first try may have died with its instance: its key is free again after a while.
      const open = told?.status === 409 && told.text.includes('idempotency_in_progress')
      if (told && told.status < 500 && !open) return told
      if (tries > 600) throw new Error(`${method} ${path}: ${told?.status} ${told?.text}`)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
  const json = async <T>(path: string) => JSON.parse((await surely('GET', path)).text) as T

  it('end every run once, balance every budget and sign every receipt while instances are killed', async () => {
    const manifest = { model: 'demo/echo', tools: ['wait'] }
    expect((await surely('POST', '/v1/agents', { name: 'worker', manifest })).status).toBe(201)
    expect((await surely('PUT', '/v1/agents/worker/budget', { maxRunsPerDay: RUNS + 5 })).status).toBe(200)

    let over = false
    const killing = (async () => {
      for (let round = 0; !over; round++) {
        await new Promise(resolve => setTimeout(resolve, 1500))
        const victim = group.instances[round % 3]!
        await victim.stop('SIGKILL')
        await victim.start()
      }
    })()

    // Each with a key of its own, so that asking again after a broken connection makes no second run.
    const ids = new Set<string>()
    const queue = Array.from({ length: RUNS }, (_, number) => number)
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let number = queue.pop(); number !== undefined; number = queue.pop()) {
          const input = { prompt: '/call*2 wait {"seconds":0}' }
          const made = await surely(
            'POST',
            '/v1/runs',
            { agentName: 'worker', input },
            { 'idempotency-key': `run-${number}` },
          )
          expect(made.status, made.text).toBe(201)
          ids.add((JSON.parse(made.text) as Run).id)
        }
      }),
    )
    expect(ids.size).toBe(RUNS)
    const runs: Run[] = []
    for (const id of ids) {
      for (;;) {
        const run = await json<Run>(`/v1/runs/${id}`)
        if (['succeeded', 'failed', 'cancelled'].includes(run.status)) {
          runs.push(run)
          break
        }
        await new Promise(resolve => setTimeout(resolve, 100))
      }
    }
    over = true
    await killing
    const failed = runs.filter(({ status }) => status !== 'succeeded')
    expect(failed.map(({ error }) => error)).toEqual([])

    // What is counted is what the journals say, each step once.
    const tokens = runs.reduce((sum, { tokensIn, tokensOut }) => sum + tokensIn + tokensOut, 0)
    const usage = await json<UsageItem[]>('/v1/usage?groupBy=agent&agentName=worker')
    expect(usage.map(row => [row.runs, row.tokensIn + row.tokensOut])).toEqual([[RUNS, tokens]])
    const budget = await json<{ today: { tokens: number } }>('/v1/agents/worker/budget')
    expect(budget.today).toMatchObject({ runs: RUNS, reserved: { tokens: 0, costUsd: 0 } })
    // A model call that was open when its instance died stays paid for, and the journal says so; one that had not been held yet cost nothing.
    let uncertain = 0
    for (const id of ids) {
      uncertain += (await surely('GET', `/v1/runs/${id}/journal`)).text.split('"code":"uncertain"').length - 1
    }
    if (uncertain === 0) expect(budget.today.tokens).toBe(tokens)
    else expect(budget.today.tokens).toBeGreaterThanOrEqual(tokens)
    for (const id of ids) {
      const receipt = (await surely('GET', `/v1/runs/${id}/receipt`)).text
      const verdict = JSON.parse((await surely('POST', '/v1/runs/receipts/verify', JSON.parse(receipt) as object)).text)
      expect(verdict).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
    }
  }, 300_000)
})
