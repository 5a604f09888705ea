import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type Driver,
  IsolationError,
  type PooledDriver,
  type Probe,
  type Reaped,
  type Sandbox,
  type SandboxLimits,
  type SnapshotRef,
} from '../driver.ts'
import { kvmRemark } from '../kvm.ts'
import { listGroups, removeGroup } from '../oci/cgroups.ts'
import { isOrphan, newOwnedId } from '../owned-id.ts'
import { probeByRun } from '../probe-by-run.ts'
import { ramMbOf } from '../qemu/machine.ts'
import { runTool } from '../run-tool.ts'
import { standbyPool } from '../standby-pool.ts'
import { withDeadline } from '../with-deadline.ts'
import { type FirecrackerOptions, firecrackerMachines, missing } from './firecracker-machines.ts'
import { outOfMemory } from './in-memory.ts'
import type { JailedMachine, JailFiller } from './jailed-machine.ts'
import { machineClones, TEMPLATES } from './machine-clones.ts'
import { machineSandbox } from './machine-sandbox.ts'
import { JAIL, restoreRequests } from './requests.ts'
import { SNAPSHOT_FILES } from './sealed-files.ts'

const openingProcess = () => {
  const source = new URL('./open-files-process.ts', import.meta.url)
  return fileURLToPath(import.meta.url.endsWith('.ts') ? source : source.href.replace(/\.ts$/, '.js'))
}

export function firecrackerDriver(options: FirecrackerOptions): PooledDriver {
  const { image, stateDir, heartbeatMs = 5000, slowness = 1, poolSize = 2 } = options
  const timing = { heartbeatMs, slowness }
  const mounts = join(stateDir, 'firecracker')
  const snapshots = join(stateDir, 'firecracker-snapshots')
  /** A folder for each driver, named for its process: no other driver has a jail in it, or takes it away. */
  const base = join(mounts, newOwnedId('firecracker'))
  const starts = new Set<Promise<unknown>>()
  const machines = firecrackerMachines(options, base)
  const { drop } = machines
  const clones = machineClones({ machines, image, base, timing, bootFillers: root => bootFillers(options, root) })
  const pool = standbyPool({ places: poolSize, keyOf: clones.keyOf, make: clones.waiting, drop })

  async function sandboxIn(machine: JailedMachine, limits: SandboxLimits, until: number): Promise<Sandbox> {
    try {
      const key = () => keyOf(options, limits)
      const remove = () => drop(machine)
      const sandbox = await machineSandbox({ machine, limits, ...timing, until, key, snapshots, remove })
      machines.hold(machine, sandbox)
      return sandbox
    } catch (error) {
      await drop(machine)
      throw error
    }
  }

  async function begin(limits: SandboxLimits, deadlineMs: number): Promise<Sandbox> {
    machines.requireOpen()
    const until = performance.now() + deadlineMs
    const waiting = await pool.take(limits)?.catch(() => undefined)
    const isWaiting = waiting !== undefined && !waiting.hasEnded()
    if (waiting !== undefined && !isWaiting) await drop(waiting)
    const coming = isWaiting ? clones.resume(waiting, deadlineMs) : clones.clone(limits, until)
    const machine = await withDeadline(coming, deadlineMs, `no machine within ${Math.round(deadlineMs)} ms`).catch(
      (error: unknown) => {
        void coming.then(drop).catch(() => undefined)
        throw error
      },
    )
    const sandbox = await sandboxIn(machine, limits, until)
    void pool.refill().catch(() => undefined)
    return { ...sandbox, pooled: isWaiting }
  }

  async function bringBack(ref: SnapshotRef, deadlineMs: number): Promise<Sandbox> {
    machines.requireOpen()
    const until = performance.now() + deadlineMs
    if (ref.backend !== 'firecracker' || ref.key !== (await keyOf(options, ref.limits))) {
      throw new IsolationError('start_failed', 'The snapshot was taken with another firecracker, image or size.')
    }
    const { sealKey, folder, limits } = ref
    if (sealKey === undefined) throw new IsolationError('start_failed', 'The snapshot has no key.')
    const fillers = (root: string) => restoreFillers(folder, sealKey, root)
    const machine = await machines.launch(limits, { requests: restoreRequests(), fillers, times: 3 }, until)
    return sandboxIn(machine, limits, until)
  }

  /** What begins is waited for when the driver is closed. */
  function counted(coming: Promise<Sandbox>): Promise<Sandbox> {
    const settled: Promise<unknown> = coming.catch(() => undefined).then(() => starts.delete(settled))
    starts.add(settled)
    return coming
  }

  const driver: PooledDriver = {
    backend: 'firecracker',
    probe: deadlineMs => probe(driver, options, deadlineMs),
    prepare: pool.prepare,
    start: (limits, deadlineMs) => counted(begin(limits, deadlineMs)),
    restore: (ref, deadlineMs) => counted(bringBack(ref, deadlineMs)),
    reap: () => reap(mounts, snapshots),
    close: () => machines.close(() => Promise.all([...starts, pool.close(), clones.settled()])),
  }
  return driver
}

const bootFillers = ({ image, kernel = image.vmlinux }: FirecrackerOptions, root: string): JailFiller[] => [
  { command: 'cp', args: ['--', kernel, join(root, JAIL.kernel)], files: [JAIL.kernel] },
  { command: 'cp', args: ['--', image.initramfs, join(root, JAIL.initrd)], files: [JAIL.initrd] },
]

const restoreFillers = (folder: string, sealKey: Uint8Array, root: string): JailFiller[] => [
  { command: process.execPath, args: [openingProcess(), folder, root], files: SNAPSHOT_FILES, input: sealKey },
]

async function keyOf({ binary = 'firecracker', image }: FirecrackerOptions, limits: SandboxLimits): Promise<string> {
  const { stdout } = await runTool(binary, ['--version'], 5000)
  return `${stdout.split('\n')[0]}:${image.digest}:${ramMbOf(limits, image)}`
}

async function probe(driver: Driver, options: FirecrackerOptions, deadlineMs: number): Promise<Probe> {
  const { binary = 'firecracker' } = options
  const reasons = await missing(options)
  const remark = await kvmRemark()
  if (reasons.length > 0) {
    return {
      backend: 'firecracker',
      available: false,
      reasons: [...reasons, ...(remark === undefined ? [] : [remark])],
      install: [
        'Install firecracker and jailer of one release, set FIRECRACKER_BIN and FIRECRACKER_JAILER, on a machine with vmx or svm.',
      ],
    }
  }
  return probeByRun(driver, {
    binary,
    versionOf: text => /Firecracker v(\S+)/.exec(text)?.[1],
    deadlineMs,
    ownKernel: true,
    verifiedBy: 'booted the guest image in a jail whose limits were read back, and ran a command in it',
    install:
      'Use firecracker and jailer of one release on a machine with vmx or svm; an image of an earlier version lacks the modules: build it again with "node-agent image".',
  })
}

/** What stands in a folder of jails of a process that is gone; their ids. */
async function reapBase(folder: string): Promise<string[]> {
  const names = (at: string) => readdir(at).catch((): string[] => [])
  const ids: string[] = []
  const programs = (await names(folder)).filter(name => name !== TEMPLATES)
  for (const program of programs) ids.push(...(await names(join(folder, program))))
  for (const id of ids) await removeGroup(id)
  await outOfMemory(folder)
  return ids
}

async function reap(mounts: string, snapshots: string): Promise<Reaped[]> {
  const reaped: Reaped[] = []
  const orphansIn = async (folder: string) =>
    (await readdir(folder).catch((): string[] => [])).filter(id => isOrphan(id, 'firecracker'))
  for (const id of await orphansIn(snapshots)) await rm(join(snapshots, id), { recursive: true, force: true })
  for (const name of await orphansIn(mounts)) {
    for (const id of await reapBase(join(mounts, name))) reaped.push({ backend: 'firecracker', id })
  }
  for (const id of (await listGroups()).filter(id => isOrphan(id, 'firecracker'))) await removeGroup(id)
  return reaped
}
