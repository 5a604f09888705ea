import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FunctionGate } from '../../router/gates/gate-host.ts'
import { createLog, parseLogFilter } from '../../shared/log/log.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
let works = true
let lines: { level: string; message: string; gate?: string }[] = []

beforeEach(async () => {
  upstream = await scriptedUpstream()
  works = true
  lines = []
})
afterEach(async () => {
  await running?.close()
  running = undefined
  await upstream.close()
})

describe.each(['fail-open', 'fail-closed'])('a %s gate that was switched off by its error budget', onAbstain => {
  it('is tried again on later answers, comes back when it works, and says so', async () => {
    const check: FunctionGate = () => {
      if (!works) throw new Error('the checker is down')
      return { verdict: 'pass' }
    }
    const clock = manualClock(new Date('2026-08-01T00:00:00Z'))
    const log = createLog({
      filter: parseLogFilter('info')!,
      write: line => void lines.push(JSON.parse(line) as (typeof lines)[number]),
    })
    running = await testRouter({
      clock,
      log,
      gates: { functions: { check } },
      config: `
price = [{ model = "up/a", input_per_mtok = 1, output_per_mtok = 5 }, { model = "up/b", input_per_mtok = 9, output_per_mtok = 50 }]
provider = [{ id = "up", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
[[gate]]
id = "check"
kind = "function"
name = "check"
on_abstain = "${onAbstain}"
error_budget = { window = 4, min_runs = 2, max_error = 0.4, probe_after_s = 30, probes = 2 }
[[route]]
match = {}
mode = "enforce"
ladder = ["up/a", "up/b"]
gates = ["check"]
`,
    })
    upstream.always(answer(200, JSON.stringify(messagesAnswer())))
    const { post, router } = running
    const ask = async () => {
      const got = await post('/v1/messages', {
        model: 'auto',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'a' }],
      })
      await router.settled()
      return got.headers.get('x-router-served-rung')
    }
    const isOff = async () =>
      /router_gate_disabled\{gate_id="check"\} 1/.test(
        await (await router.fetch(new Request('http://r/metrics'))).text(),
      )

    works = false
    await ask()
    await ask()
    expect(await isOff()).toBe(true)
    // A broken gate is probed and stays off.
    clock.advance(31_000)
    await ask()
    works = true
    await ask()
    expect(await isOff()).toBe(true)
    // Repaired, it takes two good probes: fail-closed, each request asks both rungs.
    clock.advance(31_000)
    await ask()
    await ask()
    expect(await isOff()).toBe(false)
    expect(await ask()).toBe('0')
    const said = lines.filter(({ gate }) => gate === 'check')
    expect(said).toMatchObject([
      { level: 'warn', message: expect.stringContaining('it is off') },
      { level: 'info', message: expect.stringContaining('works again') },
    ])
    const last = (await running.receipts()).at(-1)
    expect(last?.attempts).toMatchObject([{ rung: 0, gate: 'pass', gates: [{ gate_id: 'check', verdict: 'pass' }] }])
  })
})

describe('a gate with a price', () => {
  it('is paid by the budgets of its tenant for probes too', async () => {
    let runs = 0
    const clock = manualClock(new Date('2026-08-01T00:00:00Z'))
    running = await testRouter({
      clock,
      gates: {
        functions: {
          check: () => {
            runs += 1
            throw new Error('the checker is down')
          },
        },
      },
      config: `
price = [{ model = "up/a", input_per_mtok = 0, output_per_mtok = 0 }]
provider = [{ id = "up", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
budget = { per_tenant_day_usd = 100 }
[[gate]]
id = "check"
kind = "function"
name = "check"
cost_usd = 0.5
error_budget = { window = 4, min_runs = 2, max_error = 0.4, probe_after_s = 30 }
[[route]]
match = {}
mode = "enforce"
ladder = ["up/a"]
gates = ["check"]
`,
    })
    upstream.always(answer(200, JSON.stringify(messagesAnswer())))
    for (let i = 0; i < 5; i++) {
      await running.post('/v1/messages', { model: 'auto', max_tokens: 9, messages: [{ role: 'user', content: 'a' }] })
      await running.router.settled()
      clock.advance(31_000)
    }
    await running.receipts()
    const { rows } = await running.db.execute("select spent from router_budgets where key like 'tenant/%'")
    expect([runs, rows.map(({ spent }) => spent)]).toEqual([5, [5 * 500_000_000]])
  })
})
