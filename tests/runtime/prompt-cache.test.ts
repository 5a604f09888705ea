import { afterEach, describe, expect, it } from 'vitest'
import { cacheKeeper } from './cache-keeper.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: ProviderFixture[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

const TURNS = 20
const SYSTEM = 'You keep house. '.repeat(400)

/** Calls of a tool for nineteen turns, `wide` of them in each, and then an answer. */
function loop(wide: number) {
  return cacheKeeper(turn => {
    if (turn === TURNS) return { content: [{ type: 'text', text: 'Done.' }], stop_reason: 'end_turn' }
    const calls = Array.from({ length: wide }, (_, at) => ({
      type: 'tool_use',
      id: `toolu_${turn}_${at}`,
      name: 'wait',
      input: { seconds: 0 },
    }))
    return { content: [{ type: 'text', text: `Turn ${turn}.` }, ...calls], stop_reason: 'tool_use' }
  })
}

async function ran(wide: number, manifest: object = {}) {
  const on = await providerFixture()
  open.push(on)
  await on.configure('anthropic')
  const remote = loop(wide)
  on.remote.always(remote.script)
  const limits = { maxTurns: 40, maxSteps: 2000, maxOutputTokens: 1000 }
  const { run } = await on.ran('anthropic/claude-sonnet-4-5', {
    systemPrompt: SYSTEM,
    tools: ['wait'],
    limits,
    ...manifest,
  })
  return { on, run, remote }
}

describe('a tool loop on a provider that caches at markers', () => {
  it.each([1, 12])('pays for its prefix once in twenty turns (%s calls in each)', async wide => {
    const { run, remote } = await ran(wide)
    expect(run).toMatchObject({ status: 'succeeded' })
    expect(remote.uses).toHaveLength(TURNS)
    const sum = (of: (use: (typeof remote.uses)[number]) => number) =>
      remote.uses.reduce((all, use) => all + of(use), 0)
    const last = remote.uses.at(-1)!
    const whole = last.written + last.read + last.uncached
    console.log({ wide, whole, written: sum(use => use.written), read: sum(use => use.read), costUsd: run.costUsd })
    // Each token of the conversation is written once, and read from then on.
    expect(sum(use => use.written)).toBeLessThanOrEqual(whole)
    expect(sum(use => use.uncached)).toBe(0)
    expect(remote.uses.slice(1).every(({ read }) => read > 1500)).toBe(true)
    expect(Math.max(...remote.uses.map(({ markers }) => markers))).toBeLessThanOrEqual(4)
    // 3 USD for a million tokens in: read at a tenth, written at 1.25.
    const cost = (sum(use => use.written) * 3.75 + sum(use => use.read) * 0.3 + TURNS * 30 * 15) / 1e6
    expect(run.costUsd).toBeCloseTo(cost, 9)
    expect(run.costByClass?.cacheReadUsd).toBeCloseTo((sum(use => use.read) * 0.3) / 1e6, 9)
    expect(run.costByClass?.cacheWriteUsd).toBeCloseTo((sum(use => use.written) * 3.75) / 1e6, 9)
    expect(run.costByClass?.outputUsd).toBeCloseTo((TURNS * 30 * 15) / 1e6, 9)
    expect(run).toMatchObject({ cacheReadTokens: sum(use => use.read), cacheWriteTokens: sum(use => use.written) })
  })

  it('marks nothing where a question is asked once and for all', async () => {
    const on = await providerFixture()
    open.push(on)
    await on.configure('anthropic')
    const remote = cacheKeeper(() => ({ content: [{ type: 'text', text: 'Done.' }], stop_reason: 'end_turn' }))
    on.remote.always(remote.script)
    await on.ran('anthropic/claude-sonnet-4-5', { systemPrompt: SYSTEM })
    expect(remote.uses).toMatchObject([{ markers: 0, written: 0 }])
  })

  it('is held by a budget at what it costs to write all of it to the cache', async () => {
    const on = await providerFixture()
    open.push(on)
    await on.configure('anthropic')
    const remote = loop(1)
    on.remote.always(remote.script)
    await on.json(201, 'POST', '/v1/agents', {
      name: 'tight',
      manifest: {
        model: 'anthropic/claude-sonnet-4-5',
        systemPrompt: SYSTEM,
        tools: ['wait'],
        limits: { maxTurns: 40, maxSteps: 2000, maxOutputTokens: 100 },
      },
    })
    await on.json(200, 'PUT', '/v1/agents/tight/budget', { maxCostUsdPerRun: 0.02 })
    const { id } = await on.json<{ id: string }>(201, 'POST', '/v1/runs', {
      agentName: 'tight',
      input: { prompt: 'Go.' },
    })
    await (await on.events(`/v1/runs/${id}/events`)).all()
    const run = await on.json<{ costUsd: number; error: object }>(200, 'GET', `/v1/runs/${id}`)
    expect(run.costUsd).toBeLessThanOrEqual(0.02)
    expect(run).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } })
    expect(remote.uses.length).toBeGreaterThan(1)
  })
})
