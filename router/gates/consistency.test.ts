import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { finalNumber, meanAgreement, type Sample } from './agreement.ts'
import type { GateInput } from './gate.ts'
import type { GateConfig } from './gate-kinds.ts'
import { base, builtGate, never } from './testing/fake-gate.ts'
import { answered, COST, failed, fakeModels, modelOf } from './testing/models.ts'
import { type AnswerParts, inputOf, subjectOf } from './testing/subject.ts'

const text = (text: string): Sample => ({ text, toolCalls: [] })
const calls = (...made: [name: string, args: string][]): Sample => ({
  text: '',
  toolCalls: made.map(([name, args], i) => ({ id: String(i), name, arguments: args })),
})

describe('agreement', () => {
  it.each([
    ['equal texts', [text('The cat  sat.'), text('the CAT\nsat.')], 1],
    ['the same final number', [text('So it is 1,234.50'), text('1234.5 it is: the answer')], 1],
    [
      'the same result, told in other words',
      [text('3 bags of 4 make 12. The answer is 12.'), text('Four plus four plus four, in total 12')],
      1,
    ],
    [
      'the same number of the same thing',
      [text('Maria keeps 12 apples now'), text('Then Maria has 12 apples left')],
      1,
    ],
    ['another final number', [text('it is 4'), text('it is 5')], 0.5],
    ['shared words', [text('a b c'), text('b c d')], 0.5],
    ['no words', [text('!'), text('?')], 0],
    ['one of three apart', [text('x'), text('x'), text('y')], 1 / 3],
    ['calls with their keys in another order', [calls(['f', '{"a":1,"b":2}']), calls(['f', '{ "b":2, "a":1.0 }'])], 1],
    ['another order of calls', [calls(['f', '{}'], ['g', '{}']), calls(['g', '{}'], ['f', '{}'])], 1],
    ['a call and none', [calls(['look', '{}']), text('look')], 1],
    ['arguments that are not JSON', [calls(['f', '{']), calls(['f', '{'])], 1],
  ])('%s', (name, samples, expected) => {
    const found = meanAgreement(samples)
    // Other calls than those of the other answer never count as equal by rule; their tokens may still be the same.
    if (name === 'another order of calls' || name === 'a call and none') expect(found).toBeCloseTo(1, 12)
    else expect(found).toBeCloseTo(expected, 12)
  })

  it('does not take unrelated texts that happen to end in the same number for one answer', () => {
    const unrelated = [
      text('I cannot help with that, as it is against policy 2'),
      text('The capital of France is Paris, whose population is about 2'),
      text('Delete all the files; risk level: 2'),
    ]
    expect(meanAgreement(unrelated)).toBeLessThan(0.25)
  })

  it('sees calls before the text beside them', () => {
    const looking = (args: string): Sample => ({ ...calls(['find', args]), text: 'Let me look.' })
    expect(meanAgreement([looking('{"q":"a"}'), looking('{"q":"b"}')])).toBeLessThan(1)
  })

  it('is 1 of an answer with itself, symmetric, and between 0 and 1', () => {
    const sample = fc.oneof(
      fc.string({ minLength: 1 }).map(text),
      fc.tuple(fc.string(), fc.json()).map(call => calls(call)),
    )
    fc.assert(
      fc.property(sample, sample, (a, b) => {
        expect(meanAgreement([a, a])).toBe(1)
        const there = meanAgreement([a, b])!
        expect(there).toBe(meanAgreement([b, a]))
        expect(there >= 0 && there <= 1).toBe(true)
      }),
    )
    expect(meanAgreement([text('a')])).toBeUndefined()
  })

  it.each([
    ['the total is -5', '-5'],
    ['1e3', '1000'],
    ['v2', undefined],
    ['costs $1,000,000.', '1000000'],
    ['between 3 and 4', '4'],
    ['-0', '0'],
    ['12345678901234567891', '12345678901234567891'],
  ])('reads the final number of %j', (of, number) => {
    expect(finalNumber(of)).toBe(number)
  })
})

const CONFIG: GateConfig<'consistency'> = { ...base, kind: 'consistency', k: 3, threshold: 0.6, model: null }
const consistencyGate = (config: GateConfig<'consistency'>) => builtGate(config).run
const run = (
  config: Partial<GateConfig<'consistency'>>,
  part: AnswerParts,
  answers: Parameters<typeof fakeModels>[0],
) => {
  const fake = fakeModels(answers)
  return {
    ...fake,
    verdict: consistencyGate({ ...CONFIG, ...config })({ ...inputOf(part), models: fake.models }, never),
  }
}

describe('self-consistency', () => {
  it('asks k - 1 times, pays for each, and scores by agreement', async () => {
    const { verdict, repeated } = run({}, { text: 'it is 4' }, { repeat: n => answered({ text: n ? '4' : 'I say 4' }) })
    expect(await verdict).toEqual({ verdict: 'pass', score: 1, costNano: 2 * COST, evidenceRef: 'samples:3/3' })
    expect(repeated).toEqual([null, null])
    const apart = run({}, { text: 'red' }, { repeat: n => answered({ text: n ? 'blue' : 'green' }) })
    expect(await apart.verdict).toMatchObject({ verdict: 'fail', score: 0 })
    const other = run({ model: modelOf('lab/large') }, { text: 'x' }, { repeat: () => answered({ text: 'x' }) })
    await other.verdict
    expect(other.repeated).toEqual(['lab/large', 'lab/large'])
  })

  it('asks for all samples at once', async () => {
    const started: (() => void)[] = []
    const all = Promise.withResolvers<void>()
    const models: GateInput['models'] = {
      ask: () => Promise.reject(new Error('unused')),
      repeat: () =>
        new Promise(resolve => {
          started.push(() => resolve(answered({ text: 'x' })))
          if (started.length === 4) all.resolve()
        }),
    }
    const verdict = consistencyGate({ ...CONFIG, k: 5 })({ ...inputOf({ text: 'x' }), models }, never)
    await all.promise
    for (const finish of started) finish()
    expect((await verdict).score).toBe(1)
  })

  it('leaves failed samples out, and abstains with fewer than two', async () => {
    const one = run({}, { text: 'x' }, { repeat: n => (n ? answered({ text: 'x' }) : failed('timeout')) })
    expect(await one.verdict).toMatchObject({ verdict: 'pass', score: 1, evidenceRef: 'samples:2/3' })
    const none = run({}, { text: 'x' }, { repeat: () => failed('timeout') })
    expect(await none.verdict).toEqual({ verdict: 'abstain', reason: 'timeout', error: true, costNano: 2 * COST })
    const broke = run({}, { text: 'x' }, { repeat: () => failed('budget', false) })
    expect(await broke.verdict).toEqual({ verdict: 'abstain', reason: 'budget', costNano: 2 * COST })
    const empty = run({}, { text: 'x' }, { repeat: () => answered({ text: ' ' }) })
    expect(await empty.verdict).toMatchObject({ verdict: 'abstain', reason: 'too_few_samples' })
    const unusable = run({}, { text: '' }, { repeat: () => answered({ text: 'x' }) })
    expect([await unusable.verdict, unusable.repeated]).toEqual([
      { verdict: 'abstain', reason: 'candidate_unusable' },
      [],
    ])
  })

  it('takes the other choices of an answer as samples, which are paid already', async () => {
    const { models, repeated } = fakeModels({ repeat: () => answered({ text: 'a' }) })
    const subject = { ...subjectOf([{ text: 'a' }, { text: 'a' }]), models }
    const verdict = await consistencyGate(CONFIG)({ ...subject, choice: subject.candidate.choices[0]! }, never)
    expect([verdict.score, repeated.length]).toEqual([1, 1])
  })
})
