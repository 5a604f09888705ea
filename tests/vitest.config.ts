import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { CountReporter } from './count-reporter.ts'
import { passedBefore } from './passed-files.ts'
import { slice } from './slice.ts'

/** What says something about time, or fills the machine by itself: one after the other, when everything else is done. */
const ALONE = [
  'tests/router/fault-matrix.test.ts',
  'tests/router/fault-load.test.ts',
  'tests/runtime/session-lives.test.ts',
  'tests/runtime/dashboard-long-run.test.ts',
  'shared/sql/hrana/stuck-writes.test.ts',
]

/** Many processes each, which wait for each other more than they work: two at a time, between the others and those. */
const IN_PAIRS = [
  'tests/runtime/dashboard-run.test.ts',
  'node-agent/session-machines.test.ts',
  'tests/crash/thousand-fires.test.ts',
  'tests/scale/*.test.ts',
]

/** Many processes each, minutes of a virtual machine, or thousands of draws: of each list a short run does one, the seed says which. */
const LONG: Record<string, readonly string[]> = {
  topologies: [
    ...['instances', 'outage', 'peers', 'replica', 'rolling', 'topology', 'shards-cluster', 'shards-move'].map(
      name => `tests/scale/${name}.test.ts`,
    ),
    'tests/runtime/node-processes.test.ts',
  ],
  machines: ['install-packages', 'browse', 'guest/build-image', 'code-agents', 'session-machines'].map(
    name => `node-agent/${name}.test.ts`,
  ),
  kills: [
    ...['trouble', 'crash', 'mcp', 'schedules', 'thousand-fires'].map(name => `tests/crash/${name}.test.ts`),
    ...['poisoned-run', 'poisoned-node'].map(name => `tests/runtime/${name}.test.ts`),
  ],
  programs: ['start', 'held-lock', 'files-entered', 'router/durable', 'router/known-answer'].map(
    name => `tests/${name}.test.ts`,
  ),
  figures: [
    'router/calibrate/coverage.test.ts',
    'tests/router/processes.test.ts',
    'tests/runtime/dashboard-crowd.test.ts',
  ],
  installations: ['tests/package.test.ts', 'tests/router/onboard.test.ts', 'node-agent/wasm-agents.test.ts'],
}

// Which cases of long enumerations a short run does; the closing lines print it.
process.env.WAYBILL_TEST_SEED ??= String(randomInt(1_000_000))

// Many tests start programs of the package: what the engine compiled for one is there for the next.
process.env.NODE_COMPILE_CACHE ??= new URL('../node_modules/.cache/waybill/compiled', import.meta.url).pathname

// A file that is asked for by name is always run.
const named = process.argv
  .slice(2)
  .some(arg => arg.includes('.test.') || /^[\w-]+\//.test(arg.replace(/^tests\/vitest.config.ts$/, '')))
const later = Object.entries(LONG).flatMap(([name, files]) => {
  const chosen = named ? files : slice(name, files, 1)
  return files.filter(file => !chosen.includes(file))
})

const left = [...later, ...passedBefore()]

const UNIT_ROOMS = ['shared', 'router', 'runtime', 'node-agent', 'wrangler-local', 'scripts']

// A faked clock is the process's: what a test before it left behind would set timers on it.
const withFakedClock = UNIT_ROOMS.flatMap(room =>
  readdirSync(new URL(`../${room}`, import.meta.url), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.test.ts'))
    .map(file => `${room}/${file}`)
    .filter(file => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8').includes('vi.useFakeTimers')),
)

// Most long tests wait for processes they started: vitest's own choice, one worker less than cores, leaves half of a small machine
// idle. A full run on two cores left two fifths of them idle with as many workers as cores.
const maxWorkers = Math.max(2, availableParallelism()) + 1

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    // Against what hangs; a busy machine takes several times as long as a quiet one.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    // clipanion's ESM build imports without extensions; inlined, vitest resolves it.
    server: { deps: { inline: ['clipanion'] } },
    reporters: ['default', new CountReporter(later)],
    projects: [
      {
        extends: true,
        test: {
          name: 'units',
          include: UNIT_ROOMS.map(room => `${room}/**/*.test.ts`),
          exclude: [...ALONE, ...IN_PAIRS, ...left, ...withFakedClock],
          // These hold no state of a process: one reads the modules of many.
          isolate: false,
          maxWorkers,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'together',
          include: ['tests/**/*.test.ts', ...withFakedClock],
          exclude: [...ALONE, ...IN_PAIRS, ...left],
          maxWorkers,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'pairs', include: IN_PAIRS, exclude: left, maxWorkers: 2, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: { name: 'alone', include: ALONE, exclude: left, maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
})
