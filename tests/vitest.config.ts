import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { CountReporter } from './count-reporter.ts'

/** What says something about time, or fills the machine by itself: one after the other, when everything else is done. */
const ALONE = [
  'tests/router/fault-matrix.test.ts',
  'tests/router/fault-load.test.ts',
  'tests/runtime/session-lives.test.ts',
  'tests/runtime/dashboard-run.test.ts',
  'tests/runtime/dashboard-long-run.test.ts',
  'node-agent/session-machines.test.ts',
  'tests/crash/thousand-fires.test.ts',
  'tests/scale/*.test.ts',
]

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // clipanion's ESM build imports without extensions; inlined, vitest resolves it.
    server: { deps: { inline: ['clipanion'] } },
    reporters: ['default', new CountReporter()],
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: ['{shared,router,runtime,node-agent,wrangler-local,scripts,tests}/**/*.test.ts'],
          exclude: ALONE,
          // Most long tests wait for processes they started: one worker less than cores, vitest's own choice, leaves half of a small machine idle.
          maxWorkers: Math.max(2, availableParallelism()),
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
})
