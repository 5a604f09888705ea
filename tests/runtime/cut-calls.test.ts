import { mkdtemp, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Budget } from '../../shared/wire/runtime/budget.ts'
import type { JournalEvent } from '../../shared/wire/runtime/journal.ts'
import type { Run, Step } from '../../shared/wire/runtime/run.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { eventually } from '../eventually.ts'
import { chatFrames, messagesFrames } from '../upstream/answers.ts'
import { api } from './api.ts'
import { endedRun, type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

const PRICES = { prices: { 'openai-compatible/m': { inPerMTok: 1000, outPerMTok: 2000 } } }
const WORDS = Array.from({ length: 40 }, (_, at) => `word ${at} and more of it; `)
const LIMIT = { maxTokensPerDay: 150 }
const EVENT_STREAM = { 'content-type': 'text/event-stream' }

/** Sends the beginning of an answer and then nothing more, until the caller goes. */
function begins(frames: readonly string[], pieces: number, sent?: () => void) {
  return (response: ServerResponse) => {
    response.writeHead(200, EVENT_STREAM)
    response.write(frames.slice(0, pieces).join(''), () => sent?.())
  }
}

/** What was written is read in the next turns of this process's loop. */
async function wordsAreRead(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(resolve => setImmediate(resolve))
}

async function fixture(manifest: object = {}, budget?: object): Promise<ProviderFixture> {
  const made = await providerFixture()
  open.push(made)
  await made.configure('openai-compatible')
  await made.configure('anthropic')
  await made.json(200, 'PUT', '/v1/settings/models', PRICES)
  await made.json(201, 'POST', '/v1/agents', {
    name: 'worker',
    manifest: { model: 'openai-compatible/m', limits: { timeoutSeconds: 1, maxOutputTokens: 60 }, ...manifest },
  })
  if (budget) await made.json(200, 'PUT', '/v1/agents/worker/budget', budget)
  return made
}

const make = ({ call }: Pick<ProviderFixture, 'call'>) =>
  call('POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'Tell me everything that you know.' } })

/** The run, its steps, the usage of the day and the metrics say the same of what was spent. */
async function agreed(on: ProviderFixture, run: Run): Promise<void> {
  const { tokensIn, tokensOut, costUsd } = run
  const steps = await on.json<Step[]>(200, 'GET', `/v1/runs/${run.id}/steps`)
  expect(steps.reduce((sum, step) => sum + step.tokensIn, 0)).toBe(tokensIn)
  expect(steps.reduce((sum, step) => sum + step.tokensOut, 0)).toBe(tokensOut)
  expect(steps.reduce((sum, step) => sum + step.costUsd, 0)).toBeCloseTo(costUsd, 9)
  const [usage] = await on.json<UsageItem[]>(200, 'GET', '/v1/usage')
  expect(usage).toMatchObject({ tokensIn, tokensOut })
  expect(usage?.costUsd).toBeCloseTo(costUsd, 9)
  const text = await (await on.runtime.fetch(new Request('http://localhost/metrics'))).text()
  const counted = (name: string) =>
    text
      .split('\n')
      .filter(line => line.startsWith(name))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  expect(counted('waybill_tokens_total{direction="in"')).toBe(tokensIn)
  expect(counted('waybill_tokens_total{direction="out"')).toBe(tokensOut)
  expect(counted('waybill_cost_usd_total')).toBeCloseTo(costUsd, 9)
  const receipt = await on.json<{ payload: object }>(200, 'GET', `/v1/runs/${run.id}/receipt`)
  expect(receipt.payload).toMatchObject({ tokensIn, tokensOut, costUsd })
  const verified = await on.json<{ valid: boolean }>(200, 'POST', '/v1/runs/receipts/verify', { receipt })
  expect(verified.valid).toBe(true)
}

describe('a model call that does not end by itself', () => {
  it('counts its question and what came of the answer, so that a limit of the day holds over runs that time out', async () => {
    const on = await fixture({}, { maxTokensPerDay: 400 })
    on.remote.always(begins(chatFrames(WORDS), 11))
    let admitted = 0
    for (let n = 0; n < 12; n++) {
      const answer = await make(on)
      if (answer.status !== 201) {
        expect(await answer.json()).toMatchObject({ code: 'budget_exceeded', dimension: 'tokensPerDay' })
        continue
      }
      admitted++
      const run = await endedRun(on, ((await answer.json()) as Run).id)
      expect(run).toMatchObject({ status: 'failed', error: { code: 'timeout' } })
      // Ten pieces of some twenty-two characters.
      expect(run.tokensOut).toBeGreaterThanOrEqual(50)
      expect(run.tokensIn).toBeGreaterThanOrEqual(10)
    }
    const { today } = await on.json<Budget>(200, 'GET', '/v1/agents/worker/budget')
    console.log(`${admitted} of 12 runs admitted under 400 tokens`, today)
    expect(admitted).toBeGreaterThan(0)
    expect(admitted).toBeLessThan(6)
    expect(today.tokens).toBeGreaterThan(admitted * 60)
    expect(today.costUsd).toBeGreaterThan(0)
    expect(today.reserved).toEqual({ tokens: 0, costUsd: 0 })
  })

  it.each([
    ['openai-compatible/m', chatFrames(WORDS), 11, { tokensIn: 30, tokensOut: 50 }],
    // The first frame says what was read: 13,100 tokens, most of them from the cache.
    ['anthropic/claude-haiku-4-5', messagesFrames(WORDS), 12, { tokensIn: 13_100, tokensOut: 50 }],
  ] as const)(
    'that is cancelled while %s answers is in the run, its usage and its receipt',
    async (model, frames, pieces, least) => {
      const on = await fixture({ model, limits: { maxOutputTokens: 60 } })
      const sent = Promise.withResolvers<void>()
      on.remote.always(begins(frames, pieces, sent.resolve))
      const { id } = (await (await make(on)).json()) as Run
      await sent.promise
      await wordsAreRead()
      await on.json(200, 'POST', `/v1/runs/${id}/cancel`, {})
      const run = await endedRun(on, id)
      expect(run.status).toBe('cancelled')
      expect(run.tokensIn).toBeGreaterThanOrEqual(least.tokensIn)
      expect(run.tokensOut).toBeGreaterThanOrEqual(least.tokensOut)
      expect(run.costUsd).toBeGreaterThan(0)
      await agreed(on, run)
      const { events } = await on.json<{ events: JournalEvent[] }>(200, 'GET', `/v1/runs/${id}/journal`)
      expect(events.at(-1)).toMatchObject({ kind: 'step_failed', meta: { tokensIn: run.tokensIn, estimated: true } })
    },
  )

  it.each(['cancelled', 'failed'])(
    'counts its bound under a budget where no word of an answer had come (%s)',
    async how => {
      const on = await fixture({ limits: { maxOutputTokens: 60, timeoutSeconds: how === 'failed' ? 1 : 60 } }, LIMIT)
      const sent = Promise.withResolvers<void>()
      // A model that thinks without showing it: the head of its answer, and keep-alives.
      on.remote.always(begins([': thinking\n\n'], 1, sent.resolve))
      const answer = await make(on)
      const { id } = (await answer.json()) as Run
      await sent.promise
      if (how === 'cancelled') await on.json(200, 'POST', `/v1/runs/${id}/cancel`, {})
      const run = await endedRun(on, id)
      expect(run).toMatchObject({ status: how, tokensIn: 0, tokensOut: 0 })
      expect(run.uncertainTokens).toBeGreaterThanOrEqual(60)
      expect(run.uncertainCostUsd).toBeGreaterThanOrEqual(0.12)
      const { today } = await on.json<Budget>(200, 'GET', '/v1/agents/worker/budget')
      expect(today).toMatchObject({ uncertainTokens: run.uncertainTokens, tokens: run.uncertainTokens })
      expect(today.reserved).toEqual({ tokens: 0, costUsd: 0 })
      await agreed(on, run)
      // To stop early again and again passes no limit.
      expect((await make(on)).status).toBe(402)
    },
  )

  it('counts each attempt whose stream broke', async () => {
    const on = await fixture({
      retry: { maxAttempts: 3, backoffMs: 0, jitter: false },
      limits: { maxOutputTokens: 60 },
    })
    on.remote.always((response: ServerResponse) => {
      response.writeHead(200, EVENT_STREAM)
      response.write(chatFrames(WORDS).slice(0, 11).join(''), () => setTimeout(() => response.destroy(), 30))
    })
    const run = await endedRun(on, ((await (await make(on)).json()) as Run).id)
    expect(run).toMatchObject({ status: 'failed', error: { code: 'model_error' } })
    expect(on.remote.seen).toHaveLength(3)
    expect(run.tokensOut).toBeGreaterThanOrEqual(150)
    await agreed(on, run)
  })

  it('costs nothing where it was refused or never sent', async () => {
    const on = await fixture({ retry: { maxAttempts: 2, backoffMs: 0, jitter: false } }, { maxTokensPerDay: 400 })
    const run = await endedRun(on, ((await (await make(on)).json()) as Run).id)
    expect(run).toMatchObject({ status: 'failed', tokensIn: 0, tokensOut: 0, costUsd: 0 })
    const { today } = await on.json<Budget>(200, 'GET', '/v1/agents/worker/budget')
    expect(today).toMatchObject({ tokens: 0, uncertainTokens: 0, reserved: { tokens: 0, costUsd: 0 } })
  })

  it('of a session that is stopped counts for the session and the day', async () => {
    const on = await fixture({ limits: { maxOutputTokens: 60 } }, { maxTokensPerDay: 10_000 })
    const sent = Promise.withResolvers<void>()
    on.remote.always(begins(chatFrames(WORDS), 11, sent.resolve))
    const { id } = await on.json<{ id: string }>(201, 'POST', '/v1/sessions', { agentName: 'worker' })
    const turn = on.call('POST', `/v1/sessions/${id}/messages`, { content: 'Tell me everything.' })
    await sent.promise
    await wordsAreRead()
    await on.json(200, 'POST', `/v1/sessions/${id}/stop`, {})
    await turn
    const session = await on.json<{ tokensIn: number; tokensOut: number }>(200, 'GET', `/v1/sessions/${id}`)
    const { today } = await on.json<Budget>(200, 'GET', '/v1/agents/worker/budget')
    expect(today.tokens).toBeGreaterThan(10)
    expect(session.tokensIn + session.tokensOut).toBe(today.tokens)
  })
})

describe('a model call that a crash cut off', () => {
  it.each([true, false])('is shown as uncertain beside what is known (a budget: %s)', async hasBudget => {
    const on = await fixture({ limits: { maxOutputTokens: 60 } }, hasBudget ? { maxTokensPerDay: 10_000 } : undefined)
    const sent = Promise.withResolvers<void>()
    on.remote.queue(begins(chatFrames(WORDS), 11, sent.resolve))
    on.remote.always(begins(chatFrames(['Done.'], { usage: true }), 99))
    const { id } = (await (await make(on)).json()) as Run
    await sent.promise
    // As a process would leave it that died here: its owner is gone, and another claims the run.
    await on.db.execute({
      sql: "update runs set owner = 'gone', due_ms = 0, epoch = epoch + 1 where id = ?",
      args: [id],
    })
    await eventually(async () => {
      await on.runtime.scheduled()
      const { status } = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
      expect(status).toBe('succeeded')
    })
    const run = await endedRun(on, id)
    expect(run.tokensIn + run.tokensOut).toBe(1250)
    expect(run.uncertainTokens).toBeGreaterThanOrEqual(60)
    expect(run.uncertainCostUsd).toBeGreaterThan(0.1)
    const [usage] = await on.json<UsageItem[]>(200, 'GET', '/v1/usage')
    const { uncertainTokens, uncertainCostUsd } = run
    expect(usage).toMatchObject({ uncertainTokens, uncertainCostUsd })
    if (!hasBudget) return
    const { today } = await on.json<Budget>(200, 'GET', '/v1/agents/worker/budget')
    expect(today).toMatchObject({ uncertainTokens, uncertainCostUsd, tokens: 1250 + uncertainTokens! })
  })
})

describe('a call of a run that another control plane ends', () => {
  it.each([
    ['without a budget', undefined],
    ['under a budget', { maxTokensPerDay: 1_000_000 }],
  ])('is cut within moments and counted once, %s', async (_, budget) => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-cut-'))
    const url = join(folder, 'runtime.db')
    const on = await providerFixture({ url })
    open.push(on)
    await on.configure('openai-compatible')
    await on.json(200, 'PUT', '/v1/settings/models', PRICES)
    await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai-compatible/m' } })
    if (budget) await on.json(200, 'PUT', '/v1/agents/worker/budget', budget)
    const [sent, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    on.remote.always((response: ServerResponse) => {
      response.on('close', gone.resolve)
      begins(chatFrames(WORDS), 20, sent.resolve)(response)
    })
    const { id } = (await (await make(on)).json()) as Run
    await sent.promise
    const other = await api({ url, masterKey: new Uint8Array(32).fill(9) })
    await other.json(200, 'POST', `/v1/runs/${id}/cancel`, {})
    await other.close()
    const before = performance.now()
    await gone.promise
    expect(performance.now() - before).toBeLessThan(4000)
    const run = await eventually(async () => {
      const found = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
      expect(found.uncertainTokens).toBeGreaterThan(0)
      return found
    })
    await new Promise(resolve => setTimeout(resolve, 1500))
    expect(await on.json<Run>(200, 'GET', `/v1/runs/${id}`)).toEqual(run)
    expect(run).toMatchObject({ status: 'cancelled', tokensIn: 0, costUsd: 0 })
    const [usage] = await on.json<UsageItem[]>(200, 'GET', '/v1/usage')
    expect(usage).toMatchObject({ uncertainTokens: run.uncertainTokens, uncertainCostUsd: run.uncertainCostUsd })
    await rm(folder, { recursive: true, force: true })
  })
})
