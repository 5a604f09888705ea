import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AnswerPrefix, earlyRelease as earlyReleaseOf } from './early-release.ts'
import type { GateConfig } from './gate-kinds.ts'
import { regexJobs } from './regex-job.ts'
import { base, builtGate, never } from './testing/fake-gate.ts'
import { inputOf } from './testing/subject.ts'

const empty: GateConfig<'non-empty'> = {
  ...base,
  id: 'n',
  kind: 'non-empty',
  acceptToolCalls: true,
  refusal: 'fail',
  minChars: 1,
}
const short: GateConfig<'length'> = {
  ...base,
  id: 'l',
  kind: 'length',
  minChars: null,
  maxChars: 10,
  minTokens: null,
  maxTokens: null,
}
const clean: GateConfig<'regex'> = {
  ...base,
  id: 'r',
  kind: 'regex',
  must: [],
  mustNot: ['bad'],
  flags: 'u',
  window: 5,
}
const jobs = regexJobs()
const built = (config: GateConfig) => builtGate(config, { regexRunner: { run: async job => jobs(job) } })
const earlyRelease = (
  configs: readonly GateConfig[],
  ...rest: [prefix: AnswerPrefix, known?: ReadonlyMap<string, 'pass' | 'fail' | 'abstain'>]
) => earlyReleaseOf(configs.map(built), ...rest)
const text = fc.string({ unit: fc.constantFrom(' ', 'b', 'a', 'd', '😀', '\n'), maxLength: 14 })

describe('what a prefix can decide', () => {
  it.each<[boolean, string, GateConfig]>([
    [true, 'non-empty', empty],
    [true, 'a maximum', short],
    [false, 'a minimum beside it', { ...short, minChars: 2 }],
    [true, 'must-not patterns with a window', clean],
    [false, 'must-not patterns on the whole text', { ...clean, window: null }],
    [false, 'patterns that must match', { ...clean, must: ['x'] }],
    [false, 'a fail-closed gate', { ...empty, onAbstain: 'fail-closed' }],
    [false, 'JSON', { ...base, kind: 'json-valid', fences: true, onToolCall: 'pass' }],
  ])('is %s for %s', (expected, _, gate) => {
    expect(built(gate).onPrefix !== undefined).toBe(expected)
  })
})

describe('earlyRelease', () => {
  it('never takes back a final state: the whole answer gets the verdict its prefix promised', async () => {
    await fc.assert(
      fc.asyncProperty(text, text, fc.integer({ min: 1, max: 4 }), async (prefix, rest, minChars) => {
        const gates = [{ ...empty, minChars, refusal: 'pass' as const }, short, clean]
        const whole = inputOf({ text: prefix + rest })
        const verdictOn = async (id: string, input = whole) =>
          (await built(gates.find(gate => gate.id === id)!).run(input, never)).verdict
        const { states, ready } = earlyRelease(gates, { text: prefix, toolCalls: 0 })
        for (const [id, state] of states) {
          if (state === 'passed') expect(await verdictOn(id)).toBe('pass')
          if (state === 'failed') expect(await verdictOn(id)).toBe('fail')
        }
        for (const id of ready) expect(await verdictOn(id, inputOf({ text: prefix }))).toBe(await verdictOn(id))
      }),
      { numRuns: 400 },
    )
  })

  it('lets frames flow once no gate is open', () => {
    const at = (prefix: string, known?: ReadonlyMap<string, 'pass' | 'fail' | 'abstain'>) =>
      earlyRelease([empty, short, clean], { text: prefix, toolCalls: 0 }, known)
    expect(at(' ')).toMatchObject({ mayFlow: false, ready: [], failed: null })
    expect(at('hi')).toMatchObject({ mayFlow: false, ready: [] })
    expect(at('hello')).toMatchObject({ mayFlow: false, ready: ['r'] })
    expect(at('hello', new Map([['r', 'pass']]))).toMatchObject({ mayFlow: true, ready: [] })
    expect(at('hello', new Map([['r', 'abstain']]))).toMatchObject({ mayFlow: true })
    expect(at('hello', new Map([['r', 'fail']]))).toMatchObject({ mayFlow: false, failed: 'r' })
    expect(at('hello hello', new Map([['r', 'pass']]))).toMatchObject({ mayFlow: false, failed: 'l' })
  })

  it('flows at once without gates, on a tool call, and never with a gate that needs the whole answer', () => {
    expect(earlyRelease([], { text: '', toolCalls: 0 }).mayFlow).toBe(true)
    expect(earlyRelease([empty], { text: '', toolCalls: 1 }).mayFlow).toBe(true)
    expect(earlyRelease([{ ...empty, onAbstain: 'fail-closed' }], { text: 'x', toolCalls: 0 }).mayFlow).toBe(false)
  })

  it('waits for the second half of a character', () => {
    const gate = { ...clean, window: 2 }
    expect(earlyRelease([gate], { text: 'a\ud83d', toolCalls: 0 }).ready).toEqual([])
    expect(earlyRelease([gate], { text: 'a😀', toolCalls: 0 }).ready).toEqual(['r'])
  })
})
