import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { CountReporter } from './count-reporter.ts'

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['{shared,router,runtime,node-agent,wrangler-local,scripts,tests}/**/*.test.ts'],
    // Most long tests wait for processes they started; one worker less than cores, vitest's own choice, leaves half of a small machine idle.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // clipanion's ESM build imports without extensions; inlined, vitest resolves it.
    server: { deps: { inline: ['clipanion'] } },
    reporters: ['default', new CountReporter()],
  },
})
