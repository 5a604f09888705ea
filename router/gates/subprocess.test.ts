import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { expectWithin } from '../../tests/crowding.ts'
import { processRunner } from '../host/run-process.ts'
import type { GateConfig } from './gate-kinds.ts'
import { runGates } from './run-gates.ts'
import { base, builtGate, fakeGate, never } from './testing/fake-gate.ts'
import { subjectOf } from './testing/subject.ts'

const subject = subjectOf([{ text: 'the candidate' }])
let made = 0

const processes = processRunner({ vars: process.env })
afterAll(() => processes.close())

function gateOf(script: string, more: Partial<GateConfig<'subprocess'>> = {}) {
  made += 1
  const id = `real-${process.pid}-${made}`
  const config: GateConfig<'subprocess'> = {
    ...base,
    timeoutMs: 10_000,
    kind: 'subprocess',
    cmd: ['sh', '-c', script],
    cwd: null,
    envPass: [],
    stdin: 'json',
    ...more,
    id,
  }
  return builtGate(config, { runProcess: processes })
}

/** Living processes of a gate, found by the variable every one of them inherits. */
function leftOf(id: string): string[] {
  return readdirSync('/proc').filter(pid => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`ROUTER_GATE_ID=${id}\0`)
    } catch {
      return false
    }
  })
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(resolve => setImmediate(resolve))
}

describe('a subprocess gate with real programs', () => {
  it.each<[string, string, Partial<GateConfig<'subprocess'>>, string]>([
    ['reads the candidate on stdin', `grep -q '"candidate":"the candidate"' && echo '{"verdict":"pass"}'`, {}, 'pass'],
    ['reads the bare text', `[ "$(cat)" = "the candidate" ] && echo '{"verdict":"pass"}'`, { stdin: 'text' }, 'pass'],
    ['says no', `echo '{"verdict":"fail","reason":"2 tests"}'`, {}, 'fail 2 tests'],
    ['prints two lines', `echo '{"verdict":"fail"}'; echo '{"verdict":"pass"}'`, {}, 'pass'],
    ['exits badly', `echo '{"verdict":"pass"}'; exit 2`, {}, 'abstain exit_nonzero'],
    ['kills itself', 'kill -9 $$', {}, 'abstain exit_nonzero'],
    ['scores above 1', `echo '{"verdict":"pass","score":1.5}'`, {}, 'abstain bad_score'],
    ['says nothing', 'true', {}, 'abstain bad_output'],
    ['floods stdout', 'yes', {}, 'abstain output_too_large'],
    ['is not there', '', { cmd: ['/no/such/gate'] }, 'abstain spawn_failed'],
    ['closes stdin', `exec 0<&-; echo '{"verdict":"pass"}'`, {}, 'pass'],
    ['hangs with children', 'sleep 60 & sleep 60', { timeoutMs: 150 }, 'abstain timeout'],
  ])('that %s', async (_, script, more, expected) => {
    const gate = gateOf(script, more)
    const { results, runs } = await runGates({ gates: [gate], subject, signal: never })
    const { verdict, reason } = results[0]!
    expect(reason === undefined ? verdict : `${verdict} ${reason}`).toBe(expected)
    expect(runs[0]!.outcome).toBe(verdict === 'abstain' ? 'error' : 'ran')
    await until(() => leftOf(gate.id).length === 0)
  })

  it('is ended by the hard fail of another gate, and by a client that leaves', async () => {
    const deaf = `trap '' TERM; sleep 60; sleep 60`
    const byFail = gateOf(deaf)
    const no = fakeGate({
      id: 'no',
      run: async () => {
        await until(() => leftOf(byFail.id).length > 1)
        return { verdict: 'fail' }
      },
    })
    const outcome = await runGates({ gates: [byFail, no], subject, signal: never })
    expect(outcome.results.map(({ reason }) => reason)).toEqual(['cancelled', undefined])
    const byClient = gateOf(deaf)
    const client = new AbortController()
    const running = runGates({ gates: [byClient], subject, signal: client.signal })
    await until(() => leftOf(byClient.id).length > 1)
    const from = performance.now()
    client.abort()
    expect((await running).results[0]!.reason).toBe('cancelled')
    expectWithin(performance.now() - from, 400)
    await until(() => leftOf(byFail.id).length + leftOf(byClient.id).length === 0)
    // docs/spec/router.md §4 step 14: within a second, of which the grace is half.
    expectWithin(performance.now() - from, 1000)
  })
})
