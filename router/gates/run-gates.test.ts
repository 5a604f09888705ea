import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../shared/time/clock.ts'
import { createSlots } from '../../shared/time/slots.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { gateResult } from '../../shared/wire/router/trace.ts'
import type { Gate, GateVerdict } from './gate.ts'
import { runGates } from './run-gates.ts'
import { fakeGate, never } from './testing/fake-gate.ts'
import { subjectOf } from './testing/subject.ts'

afterEach(() => vi.useRealTimers())

const one = subjectOf([{ text: 'x' }])
const says = (id: string, verdict: GateVerdict, more: Partial<Gate> = {}) =>
  fakeGate({ id, run: async () => verdict, ...more })
/** Ends only by its signal, as a well-behaved gate does. */
const hangs = (id: string, more: Partial<Gate> = {}) =>
  fakeGate({
    id,
    run: (_, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
    ...more,
  })

const verdict: fc.Arbitrary<GateVerdict> = fc.record(
  {
    verdict: fc.constantFrom('pass', 'fail', 'abstain'),
    score: fc.integer({ min: 0, max: 1000 }).map(n => n / 1000),
    reason: fc.string({ maxLength: 300, unit: 'binary' }),
    costNano: fc.nat(1e9),
    error: fc.boolean(),
  },
  { requiredKeys: ['verdict'] },
)

describe('runGates', () => {
  it('gives the same outcome in any order of completion while nothing is cancelled', async () => {
    const gateArb = fc.record({
      verdicts: fc.array(verdict, { minLength: 3, maxLength: 3 }),
      costNano: fc.nat(1e6),
      onAbstain: fc.constantFrom('fail-open', 'fail-closed'),
    })
    const cases = fc.record({
      gates: fc.array(gateArb, { maxLength: 4 }),
      choices: fc.integer({ min: 1, max: 3 }),
      how: fc.constantFrom('min', 'mean'),
    })
    await fc.assert(
      fc.asyncProperty(cases, fc.infiniteStream(fc.nat()), async ({ gates, choices, how }, draws) => {
        const subject = subjectOf(Array.from({ length: choices }, () => ({ text: 'x' })))
        const outcome = (shuffled: boolean) => {
          const open: (() => void)[] = []
          const made = gates.map(({ verdicts, ...more }, i) =>
            fakeGate({
              ...more,
              id: `g${i}`,
              run: ({ choice }) => new Promise(resolve => open.push(() => resolve(verdicts[choice.index]!))),
            }),
          )
          const running = runGates({
            gates: made,
            subject,
            signal: never,
            score: how as 'min',
            cancelOnFail: false,
            clock: manualClock(),
          })
          const finish = async () => {
            await new Promise(resolve => setImmediate(resolve))
            expect(open.length).toBe(gates.length * choices)
            while (open.length > 0) {
              open.splice(shuffled ? draws.next().value! % open.length : 0, 1)[0]!()
              await Promise.resolve()
            }
            return running
          }
          return finish()
        }
        const [inOrder, mixed] = [await outcome(false), await outcome(true)]
        expect(mixed).toEqual(inOrder)
        expect(inOrder.results.map(({ gate_id }) => gate_id)).toEqual(gates.map((_, i) => `g${i}`))
        for (const result of inOrder.results) expect(gateResult.safeParse(result).success).toBe(true)
        // The model: every run costs its flat price and its own, and the worst choice speaks for a gate.
        const seen = gates.map(gate => gate.verdicts.slice(0, choices))
        const cost = gates.reduce(
          (sum, { costNano }, i) => sum + seen[i]!.reduce((own, v) => own + costNano + (v.costNano ?? 0), 0),
          0,
        )
        expect(inOrder.costNano).toBe(cost)
        expect(inOrder.results.reduce((sum, { cost: usd }) => sum + Math.round(usd * 1e9), 0)).toBe(cost)
        const words = seen.map(
          all => (['fail', 'abstain', 'pass'] as const).find(word => all.some(v => v.verdict === word))!,
        )
        expect(inOrder.results.map(result => result.verdict)).toEqual(words)
        expect(inOrder.hardFail).toBe(words.includes('fail'))
        expect(inOrder.gate).toBe(
          (['fail', 'pass', 'abstain'] as const).find(word => words.includes(word)) ?? 'skipped',
        )
        expect(inOrder.failClosedAbstain).toBe(
          words.some((word, i) => word === 'abstain' && gates[i]!.onAbstain === 'fail-closed'),
        )
        const scores = words.flatMap((word, i) =>
          word === 'abstain'
            ? []
            : [
                Math.min(
                  ...seen[i]!.flatMap(v =>
                    v.verdict === 'abstain' ? [] : [v.score ?? (v.verdict === 'pass' ? 1 : 0)],
                  ),
                ),
              ],
        )
        const expected =
          scores.length === 0
            ? null
            : how === 'min'
              ? Math.min(...scores)
              : scores.reduce((a, b) => a + b, 0) / scores.length
        expect(inOrder.score).toBe(expected)
      }),
      { numRuns: 150 },
    )
  })

  it('cancels the rest at the first hard fail and keeps what they cost so far', async () => {
    const gates = [
      hangs('slow', { costNano: 7, onAbstain: 'fail-closed' }),
      says('no', { verdict: 'fail', reason: 'r', costNano: 5 }, { costNano: 1 }),
      hangs('queue', { slots: createSlots(0), costNano: 9 }),
    ]
    const outcome = await runGates({ gates, subject: one, signal: never })
    expect(outcome).toMatchObject({ gate: 'fail', hardFail: true, failClosedAbstain: false, score: 0, costNano: 13 })
    expect(outcome.results.map(({ verdict: word, reason, cost }) => [word, reason, cost])).toEqual([
      ['abstain', 'cancelled', 7e-9],
      ['fail', 'r', 6e-9],
      ['abstain', 'cancelled', 0],
    ])
    expect(outcome.runs.map(({ outcome: how }) => how)).toEqual(['cancelled', 'ran', 'cancelled'])
  })

  it('says how long a gate took that judges at once, also beside one that does not', async () => {
    let ms = 0
    const clock = { ...systemClock, monotonic: () => ms }
    const inline = fakeGate({
      id: 'shape',
      run: () => Promise.reject(new Error('it judges at once')),
      slow: false,
      inline: () => {
        ms += 5
        return { verdict: 'pass' }
      },
    })
    const judge = fakeGate({ id: 'judge', run: async () => ({ verdict: 'pass' }) })
    const { results } = await runGates({ gates: [inline, judge], subject: one, signal: never, clock })
    expect(results.map(({ gate_id, latency_ms }) => [gate_id, latency_ms])).toEqual([
      ['shape', 5],
      ['judge', 0],
    ])
  })

  it('starts and pays for no other gate where one that judges at once fails, wherever it stands', async () => {
    const asked = vi.fn(() => new Promise<never>(() => undefined))
    const judge = fakeGate({ id: 'judge', callsModels: true, costNano: 7, run: asked })
    const empty = fakeGate({
      id: 'empty',
      run: () => Promise.reject(new Error('it judges at once')),
      slow: false,
      inline: () => ({ verdict: 'fail' }),
    })
    const outcome = await runGates({ gates: [judge, empty], subject: one, signal: never })
    expect(asked).not.toHaveBeenCalled()
    expect(outcome).toMatchObject({ gate: 'fail', hardFail: true, costNano: 0 })
    expect(outcome.results.map(({ gate_id, reason }) => [gate_id, reason])).toEqual([
      ['judge', 'cancelled'],
      ['empty', undefined],
    ])
  })

  it('lets an abstention of a fail-closed gate cancel nothing', async () => {
    const gates = [
      says('shut', { verdict: 'abstain' }, { onAbstain: 'fail-closed' }),
      says('fine', { verdict: 'pass', score: 0.5 }),
    ]
    const outcome = await runGates({ gates, subject: one, signal: never })
    expect(outcome).toMatchObject({ gate: 'pass', hardFail: false, failClosedAbstain: true, score: 0.5 })
    expect(outcome.results[1]).toMatchObject({ verdict: 'pass', score: 0.5 })
  })

  it('makes a gate abstain at its own time-out, each at its own, and does not wait for what it leaves', async () => {
    vi.useFakeTimers()
    const deaf = fakeGate({ id: 'deaf', timeoutMs: 50, costNano: 3, run: () => new Promise<never>(() => undefined) })
    const running = runGates({ gates: [deaf, hangs('later', { timeoutMs: 80 })], subject: one, signal: never })
    await vi.advanceTimersByTimeAsync(79)
    const settled = vi.fn()
    void running.then(settled)
    await vi.advanceTimersByTimeAsync(0)
    expect(settled).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    const { results, gate, runs, costNano } = await running
    expect(results.map(({ verdict: word, reason }) => [word, reason])).toEqual([
      ['abstain', 'timeout'],
      ['abstain', 'timeout'],
    ])
    expect([gate, costNano, runs.map(({ outcome }) => outcome)]).toEqual(['abstain', 3, ['error', 'error']])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('counts the wait for a slot into the time-out, over all requests, and a slot is held until the run is over', async () => {
    vi.useFakeTimers()
    let free: () => void = () => undefined
    let running = 0
    const gate = fakeGate({
      id: 'narrow',
      timeoutMs: 50,
      slots: createSlots(1),
      run: () => {
        running += 1
        return new Promise(resolve => {
          free = () => resolve({ verdict: 'pass' })
        })
      },
    })
    const first = runGates({ gates: [gate], subject: one, signal: never })
    await vi.advanceTimersByTimeAsync(50)
    expect((await first).results[0]!.reason).toBe('timeout')
    const second = runGates({ gates: [gate], subject: one, signal: never })
    await vi.advanceTimersByTimeAsync(50)
    const { results, costNano } = await second
    expect([results[0]!.reason, costNano, running]).toEqual(['timeout', 0, 1])
    free()
    const third = runGates({ gates: [gate], subject: one, signal: never })
    await vi.advanceTimersByTimeAsync(0)
    expect(running).toBe(2)
    free()
    expect((await third).gate).toBe('pass')
  })

  it('never runs more at once than a gate allows', async () => {
    let now = 0
    let most = 0
    const run: Gate['run'] = async () => {
      most = Math.max(most, ++now)
      await new Promise(resolve => setImmediate(resolve))
      now -= 1
      return { verdict: 'pass' }
    }
    const subject = subjectOf(Array.from({ length: 8 }, () => ({ text: 'x' })))
    const { gate } = await runGates({
      gates: [fakeGate({ id: 'g', slots: createSlots(3), run })],
      subject,
      signal: never,
    })
    expect([gate, most]).toEqual(['pass', 3])
  })

  it('lets the tenants that wait for a slot take turns', async () => {
    const order: string[] = []
    const run: Gate['run'] = async ({ tenantId }) => {
      order.push(tenantId)
      await new Promise(resolve => setImmediate(resolve))
      return { verdict: 'pass' }
    }
    const gates = [fakeGate({ id: 'g', slots: createSlots(1), run })]
    const tenants = ['a', 'a', 'a', 'a', 'a', 'b']
    await Promise.all(tenants.map(tenantId => runGates({ gates, subject: { ...one, tenantId }, signal: never })))
    expect(order).toEqual(['a', 'a', 'b', 'a', 'a', 'a'])
  })

  it('leaves out a disabled gate: fail-open is skipped, fail-closed counts as a fail', async () => {
    const gates = [hangs('open', { costNano: 9 }), hangs('shut', { onAbstain: 'fail-closed' })]
    const both = await runGates({ gates, subject: one, signal: never, isDisabled: () => true })
    expect(both).toMatchObject({ gate: 'skipped', hardFail: false, failClosedAbstain: true, score: null, costNano: 0 })
    expect(both.results.map(({ verdict: word, reason }) => [word, reason])).toEqual([
      ['abstain', 'disabled'],
      ['abstain', 'disabled'],
    ])
    const open = await runGates({
      gates: [gates[0]!, says('fine', { verdict: 'pass' })],
      subject: one,
      signal: never,
      isDisabled: id => id === 'open',
    })
    expect(open).toMatchObject({ gate: 'pass', failClosedAbstain: false })
    expect(open.runs).toEqual([
      { gateId: 'open', outcome: 'disabled' },
      { gateId: 'fine', outcome: 'ran' },
    ])
  })

  it('ends at once when the client goes away', async () => {
    const client = new AbortController()
    const seen = vi.fn()
    const gate = fakeGate({
      id: 'g',
      costNano: 4,
      run: (_, signal) => new Promise(() => signal.addEventListener('abort', seen)),
    })
    const running = runGates({ gates: [gate], subject: one, signal: client.signal })
    await new Promise(resolve => setImmediate(resolve))
    client.abort()
    expect(await running).toMatchObject({ gate: 'skipped', costNano: 4, runs: [{ gateId: 'g', outcome: 'cancelled' }] })
    expect(seen).toHaveBeenCalledOnce()
    expect(await runGates({ gates: [gate], subject: one, signal: client.signal })).toMatchObject({ costNano: 0 })
  })

  it('takes a gate that throws for one that is broken, and says nothing of what it threw', async () => {
    const throws = fakeGate({
      id: 'a',
      run: () => {
        throw new Error('secret')
      },
    })
    const rejects = fakeGate({ id: 'b', run: () => Promise.reject(new Error('secret')) })
    const strange = says('c', { verdict: 'pass', score: 2 })
    const { results, runs } = await runGates({ gates: [throws, rejects, strange], subject: one, signal: never })
    expect(results.map(({ reason }) => reason)).toEqual(['crashed', 'crashed', 'bad_score'])
    expect(runs.every(({ outcome }) => outcome === 'error')).toBe(true)
  })

  it('has nothing to say without gates', async () => {
    expect(await runGates({ gates: [], subject: one, signal: never })).toEqual({
      results: [],
      gate: 'skipped',
      hardFail: false,
      failClosedAbstain: false,
      score: null,
      costNano: 0,
      runs: [],
    })
  })
})
