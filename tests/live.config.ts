import { defineConfig } from 'vitest/config'
import { LiveReporter } from './live/live-reporter.ts'

/** `npm run test:live`: one backend as it is on this machine, of which the ordinary tests know nothing. */
export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['tests/live/*.live.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
    maxWorkers: 1,
    reporters: ['default', new LiveReporter()],
  },
})
