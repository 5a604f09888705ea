import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { serveRuntime } from '../../runtime/host/node.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { chatFrames } from '../upstream/answers.ts'
import { silence, stream } from '../upstream/scripted.ts'
import { api } from './api.ts'
import { until } from './node-fixture.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

let on: ProviderFixture
beforeEach(async () => {
  on = await providerFixture()
})
afterEach(() => on.close())

/** The contract's names, without those of parts that this version does not have: sandboxes, warm pools, nodes, tunnels. */
const NAMES = [
  ...['runs_total', 'run_duration_seconds', 'steps_total', 'steps_replayed_total', 'tokens_total', 'cost_usd_total'],
  ...[
    'recoveries_total',
    'runs_set_aside_total',
    'lease_lost_total',
    'sweep_duration_seconds',
    'journal_append_seconds',
    'sse_clients',
  ],
  ...[
    'budget_refusals_total',
    'budget_soft_total',
    'approvals_pending',
    'runs_open',
    'queue_age_seconds',
    'schedule_fires_total',
    'schedule_lag_seconds',
  ],
  ...['webhook_deliveries_total', 'receipts_issued_total', 'http_request_duration_seconds', 'build_info'],
]

async function page(): Promise<string> {
  return (await on.call('GET', '/metrics')).text()
}

/** The sum of a family's series that have these labels. */
function sum(text: string, name: string, labels = ''): number {
  return text
    .split('\n')
    .filter(line => new RegExp(`^waybill_${name}(?:\\{|\\s)`).test(line) && line.includes(labels))
    .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0)
}

it('has every name of the contract, and each moves with what it counts', async () => {
  for (const name of NAMES) expect(await page()).toMatch(new RegExp(`^# TYPE waybill_${name} `, 'm'))
  await on.configure('openai')
  await on.json(200, 'PUT', '/v1/settings/models', {
    aliases: {},
    prices: { 'openai/gpt-x': { inPerMTok: 1000, outPerMTok: 2000 } },
  })
  on.remote.always(stream(chatFrames(['Hel', 'lo.'], { usage: true })))
  const { run } = await on.ran('openai/gpt-x')
  expect(run.status).toBe('succeeded')
  const after = await page()
  const by = `model="${run.model}",provider="openai"`
  expect(sum(after, 'tokens_total', `direction="in",${by}`)).toBe(run.tokensIn)
  expect(sum(after, 'tokens_total', `direction="out",${by}`)).toBe(run.tokensOut)
  expect(run.tokensIn * run.costUsd).toBeGreaterThan(0)
  expect(sum(after, 'cost_usd_total', by)).toBeCloseTo(run.costUsd, 9)
  expect(sum(after, 'runs_total', 'status="succeeded"')).toBe(1)
  expect(sum(after, 'steps_total', 'kind="model"')).toBe(1)
  expect(sum(after, 'receipts_issued_total')).toBe(1)
  for (const name of ['run_duration_seconds_count', 'sweep_duration_seconds_count', 'journal_append_seconds_count']) {
    expect(sum(after, name), name).toBeGreaterThan(0)
  }
  expect(sum(after, 'http_request_duration_seconds_count', 'route="/v1/runs"')).toBeGreaterThan(0)

  // A run that waits is counted while it does, and a stream while it has a reader.
  await on.json(201, 'POST', '/v1/agents', { name: 'asker', manifest: { model: 'demo/echo', tools: ['ask_human'] } })
  const asked = await on.json<Run>(201, 'POST', '/v1/runs', {
    agentName: 'asker',
    input: { prompt: '/call ask_human {"prompt":"?"}' },
  })
  const events = await on.events(`/v1/runs/${asked.id}/events`)
  while ((await events.next())?.event !== 'step_waiting');
  await until(async () => (await on.json<Run>(200, 'GET', `/v1/runs/${asked.id}`)).status === 'waiting', 'it waits')
  const waiting = await page()
  expect([sum(waiting, 'approvals_pending'), sum(waiting, 'sse_clients', 'stream="run"')]).toEqual([1, 1])
  const openRuns = (text: string) =>
    ['queued', 'running', 'waiting'].map(status => sum(text, 'runs_open', `status="${status}"`))
  expect(openRuns(waiting)).toEqual([0, 0, 1])
  expect(sum(waiting, 'queue_age_seconds')).toBe(0)
  await on.json(200, 'POST', `/v1/runs/${asked.id}/cancel`, {})
  await events.all()
  const ended = await page()
  expect([sum(ended, 'sse_clients'), sum(ended, 'runs_total', 'status="cancelled"')]).toEqual([0, 1])
  expect(openRuns(ended)).toEqual([0, 0, 0])

  // A fork's copies were paid for once.
  const before = sum(ended, 'tokens_total')
  const fork = await on.json<Run>(201, 'POST', `/v1/runs/${asked.id}/fork`, { fromStepId: 'model-1' })
  await on.json(200, 'POST', `/v1/runs/${fork.id}/cancel`, {}).catch(() => undefined)
  expect(sum(await page(), 'tokens_total')).toBeGreaterThanOrEqual(before)

  await on.json(200, 'PUT', '/v1/agents/asker/budget', { maxRunsPerDay: 0 })
  expect((await on.call('POST', '/v1/runs', { agentName: 'asker' })).status).toBe(402)
  expect(sum(await page(), 'budget_refusals_total', 'dimension="runsPerDay"')).toBe(1)
  for (const line of (await page()).split('\n')) expect(line).not.toMatch(/tenant=|agent=|runId=|asker|worker/)
})

it('says how many runs wait for a place, and since when the first of them does', async () => {
  const moved = manualClock(new Date(0))
  const clock = { ...systemClock, now: () => new Date(Date.now() + moved.monotonic()) }
  const full = await providerFixture({ clock, limits: { maxConcurrent: 1 } })
  const read = async () => (await full.call('GET', '/metrics')).text()
  await full.configure('openai')
  full.remote.always(silence)
  await full.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai/gpt-x' } })
  for (let made = 0; made < 3; made++) await full.json(201, 'POST', '/v1/runs', { agentName: 'worker' })
  await until(async () => full.remote.seen.length > 0, 'the first run has its place')
  moved.advance(90_000)
  const text = await read()
  expect(sum(text, 'runs_open', 'status="queued"')).toBe(2)
  expect(sum(text, 'runs_open', 'status="running"')).toBe(1)
  expect(sum(text, 'queue_age_seconds')).toBeGreaterThanOrEqual(90)
  await full.close()
})

it.each(['refuses', 'does not answer'] as const)('is there while the store %s, and says so', async how => {
  const db = await openDb(':memory:')
  const held = Promise.withResolvers<never>()
  held.promise.catch(() => undefined)
  const answer = () => (how === 'refuses' ? Promise.reject(new Error('fetch failed')) : held.promise)
  let away = false
  const other = await api({ db: { ...db, execute: sql => (away ? answer() : db.execute(sql)) } })
  const read = async () => (await other.call('GET', '/metrics')).text()
  expect(sum(await read(), 'store_up')).toBe(1)
  away = true
  const metrics = await read()
  away = false
  held.reject(new Error('fetch failed'))
  await other.close()
  expect(metrics).toContain('\nwaybill_store_up 0\n')
  expect(metrics).toContain('\nwaybill_approvals_pending NaN\n')
  expect(metrics).toContain('\nwaybill_runs_open{status="queued"} NaN\n')
  expect(metrics).toContain('\nwaybill_queue_age_seconds NaN\n')
  expect(metrics).toMatch(/^waybill_runs_total\{status="failed"\} 0$/m)
})

it('asks for the token where there is one, also on loopback', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-metrics-'))
  const token = 'a-token-of-the-scraper'
  const service = await serveRuntime({
    PLATFORM_BIND: '127.0.0.1:0',
    PLATFORM_DATA_DIR: folder,
    PLATFORM_LOG_LEVEL: 'off',
    PLATFORM_METRICS_TOKEN: token,
  })
  const ask = async (headers: Record<string, string>) => (await fetch(`${service.origin}/metrics`, { headers })).status
  expect([await ask({}), await ask({ authorization: `Bearer ${token}` })]).toEqual([401, 200])
  await service.close()
  await rm(folder, { recursive: true, force: true })
})
