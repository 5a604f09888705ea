import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { digest } from './digest.ts'
import { type Bench, compare, judge, runBench, spread } from './harness.ts'
import { benches } from './registry.ts'
import { replaceSection, shown, toMarkdown, toText } from './report.ts'

describe('the harness', () => {
  test('begins no further round once its time is over, and says how many there were', async () => {
    let rounds = 0
    const bench: Bench = {
      title: 'T',
      about: 'A.',
      unit: 'x',
      rounds: 50,
      roundsWithinMs: 0,
      expectations: [],
      prepare: async () => ({
        variants: [{ name: 'A', round: async () => ++rounds }],
        close: async () => undefined,
      }),
    }
    expect((await runBench('t', bench)).rounds).toBe(3)
    expect(rounds).toBe(4)
  })

  test('warms up, then runs the variants in turn and compares them round by round', async () => {
    const order: string[] = []
    // A is disturbed in its third round and B in its second; pairs cancel what medians of each would not.
    const values = { A: [99, 10, 10, 100], B: [99, 30, 15, 300] }
    const variant = (name: 'A' | 'B') => ({
      name,
      round: async () => {
        order.push(name)
        return values[name].shift() ?? 0
      },
    })
    let closed = false
    const bench: Bench = {
      title: 'T',
      about: 'About.',
      unit: 'x/s',
      rounds: 3,
      expectations: [{ says: 'B over A', value: measured => measured.ratios[0]?.median ?? 0, atLeast: 20 }],
      prepare: async () => ({
        variants: [variant('A'), variant('B')],
        figures: async () => [{ name: 'lag', value: 1.5, unit: 'ms' }],
        close: async () => {
          closed = true
        },
      }),
    }
    const report = await runBench('t', bench)
    expect(order.join('')).toBe('ABABABAB')
    expect(report.ratios).toEqual([{ name: 'B', over: 'A', median: 3, q1: 2.25, q3: 3, min: 1.5, max: 3 }])
    expect(report.variants[0]).toMatchObject({ name: 'A', median: 10, max: 100 })
    expect(report.expectations).toEqual([{ says: 'B over A', value: 3, bound: '≥ 20', met: false }])
    expect(report.machine.node).toBe(process.version)
    expect(closed).toBe(true)
    expect(toText(report)).toMatch(/NOT MET: B over A: 3 \(expected ≥ 20\)/)
    const figures = Array.from({ length: 12 }, (_, at) => ({ name: `f${at}`, value: at, unit: '', exact: true }))
    const expectations = figures.map(({ name, value }) => ({
      says: name,
      value,
      bound: `exactly ${value}`,
      met: value > 0,
    }))
    const many = toMarkdown({ ...report, figures, expectations })
    expect(many).toMatch(
      /- met: 11 figures of the table are those that they have to be\n- NOT MET: f0: 0 \(expected exactly 0\)$/,
    )
    expect(toMarkdown(report)).toContain('| B | 30 | 22.5 to 165 | 15 to 300 | 3 × (1.5 to 3) |')
  })

  test('closes what it prepared when a round fails', async () => {
    let closed = false
    const bench: Bench = {
      title: 'T',
      about: '',
      unit: '',
      rounds: 1,
      expectations: [],
      prepare: async () => ({
        variants: [{ name: 'A', round: () => Promise.reject(new Error('no disk')) }],
        close: async () => {
          closed = true
        },
      }),
    }
    await expect(runBench('t', bench)).rejects.toThrow('no disk')
    expect(closed).toBe(true)
  })

  test('a spread is ordered and lies within its values', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.double({ min: -1e9, max: 1e9, noNaN: true }).map(value => value + 0),
          { minLength: 1 },
        ),
        values => {
          const { min, q1, median, q3, max } = spread(values)
          expect([Math.min(...values), Math.max(...values)]).toEqual([min, max])
          expect(min <= q1 && q1 <= median && median <= q3 && q3 <= max).toBe(true)
        },
      ),
    )
  })

  test('a missing figure does not count as met', () => {
    const measured = { ...compare(['A'], [[1]]), figures: [] }
    expect(judge({ says: '', value: () => Number.NaN, atLeast: 1 }, measured).met).toBe(false)
    expect(judge({ says: '', value: () => 5, atLeast: 1, atMost: 4 }, measured)).toMatchObject({
      met: false,
      bound: '≥ 1, ≤ 4',
    })
    expect(judge({ says: '', value: () => 0.3, atLeast: 0.1 + 0.2, atMost: 0.3 }, measured).bound).toBe('exactly 0.3')
  })

  test.each(Object.entries(benches))('the bench %s can be loaded', async (_, { load }) => {
    expect((await load()).rounds).toBeGreaterThan(0)
  })
})

describe('the written report', () => {
  test('begins with a table that was read from its sections', async () => {
    const document = await readFile(new URL('../../docs/benchmarks.md', import.meta.url), 'utf8')
    expect(replaceSection(document, 'digest', digest(document))).toBe(document)
    const changed = document.replace(
      /^\| waybill observe, JSON, added \| .*$/m,
      '| waybill observe, JSON, added | 7.77 ms |',
    )
    expect(digest(changed)).toContain('| Latency added to a call, observe | 7.77 ms | firstpass ')
    expect(() => digest(changed.replaceAll('waybill enforce', 'enforce'))).toThrow(/no figure "waybill enforce/)
    expect(digest(document.replaceAll('- NOT MET:', '- met:'))).toMatch(/Every expectation was met\.$/)
  })

  test('is added once, replaced in place, and leaves the rest alone', () => {
    const one = replaceSection('# Benchmarks\n\nWords.\n', 'a', 'first')
    expect(one).toBe('# Benchmarks\n\nWords.\n\n<!-- bench:a -->\nfirst\n<!-- /bench:a -->\n')
    const two = replaceSection(`${one}\nTail.\n`, 'a', 'second $& text')
    expect(two).toBe('# Benchmarks\n\nWords.\n\n<!-- bench:a -->\nsecond $& text\n<!-- /bench:a -->\n\nTail.\n')
    expect(() => replaceSection('<!-- bench:a -->\n', 'a', 'x')).toThrow(/closing marker/)
  })

  test.each([
    [0, '0'],
    [0.01234, '0.0123'],
    [1.5, '1.5'],
    [37.04, '37'],
    [71_234.5, '71,200'],
    [Number.NaN, 'NaN'],
  ])('shows %d as %s', (value, text) => {
    expect(shown(value)).toBe(text)
  })
})
