import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { programEnv } from '../../tests/program-env.ts'
import type { Rehearsal } from '../ope/rehearse.ts'
import { storedTraces } from '../ope/testing/stored-traces.ts'
import { routerSteps } from '../schema/steps.ts'
import { sampleTrace } from '../traces/testing/records.ts'

const main = new URL('main.ts', import.meta.url).pathname
let folder: string

function ope(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const env = { ...programEnv, ROUTER_DB: join(folder, 'router.db') }
  const child = spawn(process.execPath, [main, 'ope', ...args], { env, cwd: folder })
  let [out, err] = ['', '']
  child.stdout.on('data', chunk => (out += chunk))
  child.stderr.on('data', chunk => (err += chunk))
  return new Promise(resolve => child.once('close', code => resolve({ code, out, err })))
}

const CONFIG = `
price = [{ model = "anthropic/claude-haiku-4-5", input_per_mtok = 1, output_per_mtok = 5 }]
[[route]]
match = {}
mode = "enforce"
profile = "cost"
ladder = ["anthropic/claude-haiku-4-5"]
gates = ["non-empty"]
`

describe('router ope', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-ope-'))
    await writeFile(join(folder, 'next.toml'), CONFIG)
    await writeFile(join(folder, 'wrong.toml'), CONFIG.replace('ladder', 'lader'))
    const db = await openDb(join(folder, 'router.db'), { synchronous: 'normal' })
    await migrate(db, 'router', routerSteps)
    const traces = Array.from({ length: 80 }, (_, i) => {
      const rung = i % 2
      const trace = sampleTrace({ session: `s${i}`, cost: 0.002 + rung * 0.001, at: Date.UTC(2026, 0, 1 + (i % 4)) })
      trace.policy = { ...trace.policy, id: 'thompson@1+eps', start_rung: rung, propensity: 0.5 }
      return { trace, failed: i % 4 === 0 }
    })
    await storedTraces(db, traces)
    db.close()
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('prints estimates of both metrics with their intervals, or one as JSON', async () => {
    const { code, out, err } = await ope('--start-rung', '1')
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/^cost: 80 requests, 50\.0 % started as rehearsed, worth 40\.0 rows\n/)
    expect(out).toMatch(/^IPS {2,}0\.003000000 {2}0\.00\d+ {2}0\.00\d+$/m)
    expect(out).toMatch(/^SNIPS {2,}0\.003000000 {2}0\.003000000 {2}0\.003000000$/m)
    expect(out).toContain('failure: 80 requests')
    const json = await ope('--start-rung', '0', '--metric', 'failure', '--json')
    const { rehearsals } = JSON.parse(json.out) as { rehearsals: Rehearsal[] }
    expect(rehearsals).toHaveLength(1)
    expect(rehearsals[0]).toMatchObject({ metric: 'failure', n: 80, snips: { value: 0.5 }, warnings: [] })
    expect((await ope('--start-rung', '0', '--metric', 'failure', '--json')).out).toBe(json.out)
  })

  it('walks a config, and names the mistake in one that does not load', async () => {
    const { code, out } = await ope('--config', 'next.toml', '--metric', 'cost', '--since', '2026-01-03')
    expect(code).toBe(0)
    expect(out).toMatch(/^cost: 40 requests, 100\.0 % /)
    expect(out).toMatch(/walked directly, 40 requests \(100\.0 %\):\n.*\nas logged .*\nthis config {2,}0\.002500000/)
    const wrong = await ope('--config', 'wrong.toml')
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringMatching(/wrong\.toml:\d+:\d+: unknown key "lader"/)])
    expect((await ope('--config', 'none.toml')).err).toContain('--config names none.toml, which cannot be read')
  })

  it('ends with 1 when nothing logged could stand for the policy', async () => {
    const never = await ope('--start-rung', '7')
    expect([never.code, never.out]).toEqual([
      1,
      expect.stringContaining('starts at rung 7, where no logged request started'),
    ])
    expect((await ope('--start-rung', '1', '--tenant', 'nobody')).code).toBe(1)
  })

  it.each([
    [[], 'Give --start-rung or --config'],
    [['--start-rung', '1', '--config', 'next.toml'], 'Give --start-rung or --config'],
    [['--start-rung', 'one'], '--start-rung takes the number of a rung, such as 1, not one'],
    [['--start-rung', '1', '--metric', 'speed'], '--metric takes cost or failure, not speed'],
    [['--start-rung', '1', '--since', 'then'], '--since'],
  ])('refuses %j', async (args, why) => {
    const { code, out, err } = await ope(...args)
    expect(code).toBe(2)
    expect(out + err).toContain(why)
  })
})
