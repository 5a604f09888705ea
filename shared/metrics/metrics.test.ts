import { describe, expect, it } from 'vitest'
import { createMetrics } from './metrics.ts'

describe('metrics', () => {
  it('prints counters and gauges with help, type and sorted labels', () => {
    const metrics = createMetrics()
    const served = metrics.counter('served_total', 'Answers served.')
    served.add(1, { rung: 0, model: 'a/b' })
    served.add(2, { model: 'a/b', rung: 0 })
    metrics.gauge('depth', 'Queue depth.').set(4)
    metrics.gauge('live', 'Read when asked.').read(() => 7)
    expect(metrics.text()).toBe(
      [
        '# HELP served_total Answers served.',
        '# TYPE served_total counter',
        'served_total{model="a/b",rung="0"} 3',
        '# HELP depth Queue depth.',
        '# TYPE depth gauge',
        'depth 4',
        '# HELP live Read when asked.',
        '# TYPE live gauge',
        'live 7',
        '',
      ].join('\n'),
    )
  })

  it('prints cumulative histogram buckets, a bound belonging to its own bucket', () => {
    const metrics = createMetrics()
    const seconds = metrics.histogram('seconds', 'Time.', [0.1, 1])
    for (const value of [0.1, 0.5, 3]) seconds.observe(value, { mode: 'observe' })
    expect(metrics.text().split('\n').slice(2, -1)).toEqual([
      'seconds_bucket{mode="observe",le="0.1"} 1',
      'seconds_bucket{mode="observe",le="1"} 2',
      'seconds_bucket{mode="observe",le="+Inf"} 3',
      'seconds_sum{mode="observe"} 3.6',
      'seconds_count{mode="observe"} 3',
    ])
  })

  it('escapes label values, so that a name from outside cannot forge a line', () => {
    const metrics = createMetrics()
    metrics.counter('x_total', 'X.').add(1, { model: 'a"} 9\nforged 1\\' })
    expect(metrics.text()).toContain('x_total{model="a\\"} 9\\nforged 1\\\\"} 1\n')
    expect(metrics.text().split('\n')).toHaveLength(4)
  })

  it('keeps 200 characters of a name that a far end made up', () => {
    const metrics = createMetrics()
    const counter = metrics.counter('z_total', 'Z.')
    for (let i = 0; i < 2; i++) counter.add(1, { model: 'm'.repeat(3000) })
    expect(metrics.text()).toContain(`z_total{model="${'m'.repeat(200)}"} 2\n`)
  })

  it('gives two names that UTF-8 writes alike one series', () => {
    const metrics = createMetrics()
    const counter = metrics.counter('z_total', 'Z.')
    for (const half of ['\ud83d', '\ud83e']) counter.add(1, { model: half })
    expect(metrics.text()).toContain('z_total{model="\ufffd"} 2\n')
  })

  it('shows a counter from the start where its series are known', () => {
    const metrics = createMetrics()
    metrics.counter('a_total', 'A.', [{}])
    metrics.counter('b_total', 'B.', [{ outcome: 'failed' }]).add(1, { outcome: 'failed' })
    expect(metrics.text()).toContain('\na_total 0\n')
    expect(metrics.text()).toContain('\nb_total{outcome="failed"} 1\n')
  })

  it('counts the 501st value of a label as other', () => {
    const metrics = createMetrics()
    const seen = metrics.counter('y_total', 'Y.')
    for (let i = 0; i < 700; i++) seen.add(1, { model: `m${i}` })
    expect(metrics.text()).toContain('y_total{model="other"} 200')
    expect(
      metrics
        .text()
        .split('\n')
        .filter(line => line.startsWith('y_total')),
    ).toHaveLength(501)
  })

  it('refuses a second metric of the same name', () => {
    const metrics = createMetrics()
    metrics.counter('z', 'Z.')
    expect(() => metrics.gauge('z', 'Z.')).toThrow('registered twice')
  })
})
