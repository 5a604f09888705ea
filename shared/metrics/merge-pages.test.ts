import fc from 'fast-check'
import { expect, it } from 'vitest'
import { pageMerger } from './merge-pages.ts'
import { createMetrics } from './metrics.ts'

const { mergePages, countersOf } = pageMerger({ summed: ['router_in_flight_requests'] })

interface Did {
  calls: number
  took: number
  model: string
}

/** What processes counted, each on a page of its own, or all of it on one. */
function pageOf(processes: readonly (readonly Did[])[]): string {
  const metrics = createMetrics()
  const calls = metrics.counter('router_requests_total', 'Traced requests.')
  const took = metrics.histogram('router_ttfb_seconds', 'To the first byte.', [0.1, 1])
  const open = metrics.gauge('router_in_flight_requests', 'Being answered.')
  const breaker = metrics.gauge('router_breaker_state', '0 closed, 2 open.')
  open.set(processes.length)
  breaker.set(Math.max(0, ...processes.map(one => one.length % 3)), { provider: 'a "quoted" one' })
  for (const did of processes.flat()) {
    calls.add(did.calls, { model: did.model })
    took.observe(did.took, { model: did.model })
  }
  return metrics.text()
}

const lines = (page: string) => page.trim().split('\n').toSorted()

it('the pages of several processes are the page of one that did it all', () => {
  const did = fc.record({
    calls: fc.nat(1000),
    took: fc.nat(20).map(eighths => eighths / 8),
    model: fc.constantFrom(
      'a',
      'b/c',
      'with space',
      'with "quotes"',
      'back\\slash',
      'new\nline',
      'a\rreturn',
      'a\u2028separator',
    ),
  })
  fc.assert(
    fc.property(fc.array(fc.array(did, { maxLength: 6 }), { minLength: 1, maxLength: 5 }), processes => {
      const merged = mergePages(processes.map(one => pageOf([one])))
      expect(lines(merged)).toEqual(lines(pageOf(processes)))
    }),
  )
})

it('of a process that ended what it counted goes on to count, and where it stood is over', () => {
  const page = pageOf([[{ calls: 3, took: 0.5, model: 'a' }]])
  const left = countersOf(page)
  expect(left).toContain('router_requests_total{model="a"} 3')
  expect(left).toContain('router_ttfb_seconds_count{model="a"} 1')
  expect(left).not.toContain('router_in_flight_requests')
  expect(mergePages([left, page])).toContain('router_requests_total{model="a"} 6')
  expect(mergePages([left, page])).toContain('router_in_flight_requests 1')
})
