import { EXPECTED } from './cascade/expected.ts'
import { feedbackLoad } from './cascade/feedback-load.ts'
import { knownAnswer } from './cascade/known-answer.ts'
import { ROUTES, serveTasks } from './cascade/served-tasks.ts'
import { TASKS } from './cascade/tasks.ts'
import type { Bench, Measured } from './harness.ts'

const RATE = 500

const figure = ({ figures }: Measured, name: string) => figures.find(one => one.name === name)?.value ?? Number.NaN

/** The known answer of the router contract, over HTTP, and what feedback costs beside traffic. */
export const cascadeBench: Bench = {
  title: 'The known answer: 974 tasks over a ladder',
  about:
    'A published run of 974 tasks with unit-test gates, replayed by a mock provider behind a router on a socket: over the ladder, and over ' +
    'each of its models alone; every answer is reported on. Client, router and provider share a process, so the rate is no measure of the ' +
    'router; the figures are. Then a router in a process of its own takes requests and reports at a fixed rate.',
  unit: 'tasks/s',
  rounds: 1,
  expectations: [
    ...EXPECTED.map(({ name, value, within }) => ({
      says: name,
      value: (m: Measured) => figure(m, name),
      atLeast: value - within,
      atMost: value + within,
    })),
    { says: 'feedback beside traffic, reports/s', value: m => figure(m, 'feedback, rate'), atLeast: 0.95 * RATE },
  ],
  async prepare() {
    const served = await serveTasks()
    return {
      variants: ROUTES.map(name => ({
        name,
        async round() {
          const began = performance.now()
          await served.run(name)
          return (TASKS.length * 1000) / (performance.now() - began)
        },
      })),
      async figures() {
        await served.stop()
        const known = await knownAnswer()
        const { alone, routed, feedback } = await feedbackLoad(RATE)
        return [
          ...[...known].map(([name, value]) => ({ name, value, unit: '', exact: true })),
          { name: 'routed without feedback, rate', value: alone.rate, unit: 'req/s' },
          { name: 'routed without feedback, p50', value: alone.p50, unit: 'ms' },
          { name: 'routed without feedback, p99', value: alone.p99, unit: 'ms' },
          { name: 'routed, rate', value: routed.rate, unit: 'req/s' },
          { name: 'routed, p50', value: routed.p50, unit: 'ms' },
          { name: 'routed, p99', value: routed.p99, unit: 'ms' },
          { name: 'feedback, rate', value: feedback.rate, unit: 'reports/s' },
          { name: 'feedback, p50', value: feedback.p50, unit: 'ms' },
          { name: 'feedback, p99', value: feedback.p99, unit: 'ms' },
        ]
      },
      close: served.close,
    }
  },
}
