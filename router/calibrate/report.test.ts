import { describe, expect, it } from 'vitest'
import { calibrationReport, type ReportOptions, type ReportPair } from './report.ts'

const OPTIONS: ReportOptions = { method: 'ltt', alpha: 0.1, delta: 0.05, minN: 30, bet: 0.5, holdout: 0 }
const pairs = (n: number, failures: number, score: number, rung = 0): ReportPair[] =>
  Array.from({ length: n }, (_, i) => ({ score, failed: i < failures, rung }))

describe('the report on the pairs of a route', () => {
  it('gives the figures of the known answer for the answers that were served', () => {
    const served = [...pairs(757, 20, 1), ...pairs(183, 11, 1, 1), ...pairs(15, 15, 0.5), ...pairs(19, 19, 0)]
    const { table, threshold, certified, text } = calibrationReport(served, OPTIONS)
    expect(
      table.map(({ lambda, n, failures, ucb, p }) => [lambda, n, failures, ucb?.toFixed(5), p?.toPrecision(3)]),
    ).toEqual([
      [1, 940, 31, '0.07290', '3.96e-15'],
      [0.5, 955, 46, '0.08777', '3.35e-9'],
      [0, 974, 65, '0.10595', '0.000168'],
    ])
    expect([threshold, certified]).toEqual([0, true])
    expect(text).toBe(
      'certified: of answers that score 0 or more, at most 10 % fail, at 95 % confidence for this one look, if none depends on another (n=974, failed 65, p=0.0001680)',
    )
    expect(calibrationReport(served, { ...OPTIONS, method: 'conformal' }).threshold).toBe(0.5)
  })

  it('says how many answers are missing', () => {
    const text = (given: ReportPair[], more: Partial<ReportOptions> = {}) =>
      calibrationReport(given, { ...OPTIONS, ...more }).text
    expect(text([])).toBe('not certified: n=0, need 30')
    expect(text(pairs(12, 0, 1))).toBe('not certified: n=12, need 30')
    expect(text(pairs(12, 2, 1))).toBe('not certified: n=12, need 61 if no more than the 2 that failed so far do')
    expect(text(pairs(100, 0, 1), { method: 'conformal' })).toBe('not certified: n=100, need 150')
  })

  it('computes from the older part and shows the rest untouched', () => {
    const all = [...pairs(100, 0, 1), ...pairs(60, 6, 1), ...pairs(40, 20, 0.2)]
    const { pairs: used, holdout, threshold } = calibrationReport(all, { ...OPTIONS, holdout: 0.5 })
    expect([used, threshold]).toEqual([100, 1])
    expect(holdout).toMatchObject({ pairs: 100, n: 60, failures: 6, rate: 0.1 })
    expect(holdout?.upper).toBeGreaterThan(0.1)
  })

  it('counts an answer that was passed over for its score as failed, where a threshold would have served it', () => {
    // The cheapest rung scores 1 or 0.3, and what scores 0.3 was never served from it: the top rung is right with the same score.
    const served = [...pairs(60, 1, 1), ...pairs(60, 1, 0.3, 1).map(pair => ({ ...pair, passedOver: 0.3 }))]
    const { table, threshold, passed_over } = calibrationReport(served, OPTIONS)
    expect(table.map(({ lambda, n, failures, outcome }) => [lambda, n, failures, outcome])).toEqual([
      [1, 60, 1, 'passed'],
      [0.3, 120, 61, 'failed'],
    ])
    expect([threshold, passed_over]).toEqual([1, 60])
    expect(calibrationReport(served, { ...OPTIONS, method: 'eprocess' }).table.at(-1)).toMatchObject({ failures: 61 })
    // Between the two scores it is known: the top rung served it, and would again.
    const better = pairs(60, 1, 0.9, 1).map(pair => ({ ...pair, passedOver: 0.3 }))
    expect(calibrationReport([...pairs(60, 1, 1), ...better], OPTIONS).threshold).toBe(0.9)
  })

  it('tells the cheapest rung apart', () => {
    const { rung0, table } = calibrationReport([...pairs(40, 0, 1), ...pairs(40, 30, 1, 1)], OPTIONS)
    expect([rung0.map(({ n, outcome }) => [n, outcome]), table.map(({ n, outcome }) => [n, outcome])]).toEqual([
      [[40, 'passed']],
      [[80, 'failed']],
    ])
  })

  it('walks the grid of the e-process', () => {
    const { table, threshold } = calibrationReport(pairs(200, 0, 0.5), { ...OPTIONS, method: 'eprocess' })
    expect(threshold).toBe(0)
    expect(table.filter(({ outcome }) => outcome === 'passed').map(({ lambda }) => lambda)).toEqual([
      0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0,
    ])
    expect(table[0]).toMatchObject({ lambda: 1, n: 0, evidence: 1 })
  })
})
