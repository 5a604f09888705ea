import { afterAll, describe, expect, it } from 'vitest'
import { regexWorkers } from '../host/regex-worker.ts'
import type { GateConfig } from './gate-kinds.ts'
import { runGates } from './run-gates.ts'
import { base, builtGate, never } from './testing/fake-gate.ts'
import { type AnswerParts, inputOf, subjectOf } from './testing/subject.ts'

const workers = regexWorkers({ size: 1 })
afterAll(() => workers.close())

const config: GateConfig<'regex'> = { ...base, kind: 'regex', must: [], mustNot: [], flags: 'u', window: null }
const gateOf = (more: Partial<GateConfig<'regex'>>) => builtGate({ ...config, ...more }, { regexRunner: workers })

describe('regex', () => {
  it.each<[string, AnswerParts, Partial<GateConfig<'regex'>>, string]>([
    ['what must be there', { text: 'Total: 5 EUR' }, { must: ['\\d+ EUR'] }, 'pass'],
    ['what is missing', { text: 'Total' }, { must: ['T', '\\d'] }, 'fail must[1] does not match'],
    ['what must not be there', { text: 'As an AI' }, { mustNot: ['\\bAI\\b'] }, 'fail must_not[0] matches'],
    ['flags', { text: 'as an ai' }, { mustNot: ['\\bAI\\b'], flags: 'iu' }, 'fail must_not[0] matches'],
    ['only the window', { text: '😀😀AI' }, { mustNot: ['AI'], window: 3 }, 'pass'],
    ['all of the window', { text: '😀😀AI' }, { mustNot: ['A'], window: 3 }, 'fail must_not[0] matches'],
    ['the end of the window as the end', { text: 'abcd' }, { must: ['^abc$'], window: 3 }, 'pass'],
    ['a cut answer like any other', { text: 'abc', finish: 'length' }, { must: ['b'] }, 'pass'],
    ['no text beside a tool call', { calls: [['ls', '{"b":1}']] }, { must: ['b'] }, 'fail must[0] does not match'],
  ])('looks at %s', async (_, parts, more, expected) => {
    const { verdict, reason } = await gateOf(more).run(inputOf(parts), never)
    expect(reason === undefined ? verdict : `${verdict} ${reason}`).toBe(expected)
  })

  it('abstains at its time-out when a pattern backtracks without end', async () => {
    const gate = gateOf({ id: 'slow', timeoutMs: 200, must: ['^(a|a)*$'] })
    const { results } = await runGates({
      gates: [gate],
      subject: subjectOf([{ text: `${'a'.repeat(50)}!` }]),
      signal: never,
    })
    expect(results[0]).toMatchObject({ verdict: 'abstain', reason: 'timeout' })
    expect(results[0]!.latency_ms).toBeLessThan(2000)
  })

  it('judges the answers of one tenant while those of another take all the time there is', async () => {
    const gate = gateOf({ timeoutMs: 5000, mustNot: ['^(a|a)*$', 'secret'] })
    const leave = new AbortController()
    const judge = (tenantId: string, text: string, signal: AbortSignal) =>
      runGates({ gates: [gate], subject: { ...subjectOf([{ text }]), tenantId }, signal })
    const hanging = Array.from({ length: 4 }, () => judge('a', `${'a'.repeat(50)}!`, leave.signal))
    expect((await judge('b', 'a secret', never)).results[0]).toMatchObject({ reason: 'must_not[1] matches' })
    leave.abort()
    expect((await Promise.all(hanging)).map(({ results }) => results[0]?.reason)).toEqual(Array(4).fill('cancelled'))
  })
})
