import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildImage } from '../../node-agent/guest/build-image.ts'
import { INPUTS_FOLDER } from '../../node-agent/guest/image-inputs.ts'
import { openImage } from '../../node-agent/guest/image-manifest.ts'
import type { Driver, Sandbox } from '../../node-agent/isolation/driver.ts'
import { ociDriver } from '../../node-agent/isolation/oci/oci-driver.ts'
import { gvisor, runc } from '../../node-agent/isolation/oci/oci-flavours.ts'
import { qemuDriver } from '../../node-agent/isolation/qemu/qemu-driver.ts'
import { wasmDriver } from '../../node-agent/isolation/wasm/wasm-driver.ts'
import type { Bench } from './harness.ts'

const LIMITS = { memoryMb: 64, cpus: 2, pids: 32, diskMb: 16 }
const DEADLINE_MS = 30_000
const WARM = 'QEMU/TCG, from the pool to the end of the first command'
const WARM_STARTS = 60
const WHOLE = 'all of it, with its image built and its sandboxes started'

/** Rows of the table, in the order of the variants. */
const ROWS = [
  'runc, a new sandbox to its first command ended',
  'runc, a command in a running sandbox',
  'gVisor, a new sandbox to its first command ended',
  'gVisor, a command in a running sandbox',
  'QEMU/TCG, hand-out of a paused machine',
  'QEMU/TCG, a command in a machine from the pool',
  'QEMU/TCG, copy-on-write restore to ready',
  'Wasm, a script in a running sandbox',
] as const
const median = (row: (typeof ROWS)[number]) => (report: { variants: { name: string; median: number }[] }) =>
  report.variants.find(({ name }) => name === row)?.median ?? Number.NaN

const named = (row: string) => (report: { figures: { name: string; value: number }[] }) =>
  report.figures.find(({ name }) => name === row)?.value ?? Number.NaN

/** How long foreign code waits for its sandbox. */
export const isolationBench: Bench = {
  title: 'Isolation backends',
  about:
    'Milliseconds through the drivers of the node, limits read back each time. "Ready" is an agent inside that has ' +
    'answered with its new name, entropy and clock. QEMU runs on its software emulation, as no hardware virtualisation is here.',
  unit: 'ms',
  rounds: 11,
  // What is made ready and what is put away take some of the 90 s as well.
  roundsWithinMs: 60_000,
  expectations: [
    { says: 'a container is quick', value: median(ROWS[0]), atMost: 80 },
    { says: 'a container of gVisor is quick enough', value: median(ROWS[2]), atMost: 450 },
    { says: 'gVisor, warm, is quick', value: median(ROWS[3]), atMost: 60 },
    { says: 'a paused machine is at hand', value: median(ROWS[4]), atMost: 10 },
    { says: 'the first command of a fresh machine, median', value: named(`${WARM}, median`), atMost: 50 },
    { says: 'the first command of a fresh machine, late', value: named(`${WARM}, 95th percentile`), atMost: 150 },
    { says: 'a machine is restored in time', value: median(ROWS[6]), atMost: 150 },
    { says: 'a script starts at once', value: median(ROWS[7]), atMost: 5 },
    {
      says: 'the bench itself ends in time, in seconds',
      value: named(WHOLE),
      atMost: 90,
    },
  ],
  async prepare() {
    const began = performance.now()
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-isolation-'))
    await chmod(folder, 0o711)
    const stateDir = join(folder, 'state')
    await buildImage(INPUTS_FOLDER, join(folder, 'image'))
    const image = (await openImage(join(folder, 'image')))!
    const containers = ociDriver(runc(), { image, stateDir })
    const userKernel = ociDriver(gvisor(), { image, stateDir })
    const pooled = qemuDriver({ image, stateDir, accel: 'tcg', poolSize: 1 })
    const unpooled = qemuDriver({ image, stateDir, accel: 'tcg', poolSize: 0 })
    const scripts = wasmDriver()
    const drivers = [containers, userKernel, pooled, unpooled, scripts]

    async function ran(sandbox: Sandbox, argv: [string, ...string[]]): Promise<number> {
      const from = performance.now()
      const exec = await sandbox.exec({ argv, deadlineMs: DEADLINE_MS, outputBytes: 1000 })
      const exit = await exec.exit
      if (exit.kind !== 'code' || exit.code !== 0)
        throw new Error(`${argv.join(' ')} ended with ${JSON.stringify(exit)}`)
      return performance.now() - from
    }
    async function fresh(driver: Driver, command: boolean): Promise<number> {
      const from = performance.now()
      const sandbox = await driver.start(LIMITS, DEADLINE_MS)
      if (command) await ran(sandbox, ['echo', 'hi'])
      const took = performance.now() - from
      await sandbox.stop()
      return took
    }
    async function fromPool(measure: (sandbox: Sandbox, handedOut: number) => Promise<number>): Promise<number> {
      await pooled.prepare(LIMITS)
      const from = performance.now()
      const sandbox = await pooled.start(LIMITS, DEADLINE_MS)
      const took = await measure(sandbox, performance.now() - from)
      await sandbox.stop()
      return took
    }
    const warm = {
      runc: await containers.start(LIMITS, DEADLINE_MS),
      gvisor: await userKernel.start(LIMITS, DEADLINE_MS),
      wasm: await scripts.start(LIMITS, DEADLINE_MS),
    }
    const rounds: (() => Promise<number>)[] = [
      () => fresh(containers, true),
      () => ran(warm.runc, ['echo', 'hi']),
      () => fresh(userKernel, true),
      () => ran(warm.gvisor, ['echo', 'hi']),
      () => fromPool(async (_sandbox, handedOut) => handedOut),
      () => fromPool(sandbox => ran(sandbox, ['echo', 'hi'])),
      () => fresh(unpooled, false),
      () => ran(warm.wasm, ['js', '-e', 'print(6 * 7)']),
    ]
    return {
      variants: ROWS.map((name, index) => ({ name, round: rounds[index]! })),
      async figures() {
        const times: number[] = []
        for (let start = 0; start < WARM_STARTS; start++) {
          times.push(await fromPool(async (sandbox, handedOut) => handedOut + (await ran(sandbox, ['echo', 'hi']))))
        }
        times.sort((a, b) => a - b)
        return [
          { name: `${WARM}, median`, value: times[WARM_STARTS / 2]!, unit: 'ms' },
          { name: `${WARM}, 95th percentile`, value: times[Math.ceil(WARM_STARTS * 0.95) - 1]!, unit: 'ms' },
          { name: WHOLE, value: (performance.now() - began) / 1000, unit: 's' },
        ]
      },
      async close() {
        for (const driver of drivers) await driver.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
