import { readdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { GuestImage } from '../../guest/image-manifest.ts'
import {
  type Driver,
  IsolationError,
  type Probe,
  type Reaped,
  type Sandbox,
  type SandboxLimits,
  type SnapshotRef,
} from '../driver.ts'
import { findProgram } from '../find-program.ts'
import { kvmRemark, kvmTrouble } from '../kvm.ts'
import { type CgroupLimits, CPU_PERIOD, listGroups, removeGroup } from '../oci/cgroups.ts'
import { isOrphan, newOwnedId } from '../owned-id.ts'
import { probeByRun } from '../probe-by-run.ts'
import { ramMbOf } from '../qemu/machine.ts'
import { runTool } from '../run-tool.ts'
import { inMemory, outOfMemory } from './in-memory.ts'
import { JAIL } from './jail-files.ts'
import { type JailedMachine, type JailFiller, jailedMachine } from './jailed-machine.ts'
import { machineSandbox } from './machine-sandbox.ts'
import { bootRequests, type FirecrackerRequest, requestFault, restoreRequests } from './requests.ts'
import { SNAPSHOT_FILES } from './sealed-files.ts'

export interface FirecrackerOptions {
  image: GuestImage
  stateDir: string
  /** FIRECRACKER_BIN; otherwise `firecracker` on PATH. */
  binary?: string
  jailer?: string
  /** FIRECRACKER_KERNEL; otherwise the image's. */
  kernel?: string
  /** What stands for the hardware. */
  device?: string
  heartbeatMs?: number
  /** How many times longer than on hardware the host waits for what a guest's kernel does: it may be emulated. */
  slowness?: number
}

const VMM_OVERHEAD_MB = 32
const TASKS = 64

const openingProcess = () => {
  const source = new URL('./open-files-process.ts', import.meta.url)
  return fileURLToPath(import.meta.url.endsWith('.ts') ? source : source.href.replace(/\.ts$/, '.js'))
}

export function firecrackerDriver(options: FirecrackerOptions): Driver {
  const { image, stateDir, heartbeatMs = 5000, slowness = 1 } = options
  const mounts = join(stateDir, 'firecracker')
  const snapshots = join(stateDir, 'firecracker-snapshots')
  /** A folder for each driver, named for its process: no other driver has a jail in it, or takes it away. */
  const base = join(mounts, newOwnedId('firecracker'))
  /** From the beginning of a start; with its sandbox once there is one. */
  const machines = new Map<JailedMachine, Sandbox | undefined>()
  const starts = new Set<Promise<unknown>>()
  let closed = false
  /** One at a time, as a second mount would hide the jails in the first. */
  let mounted: Promise<void> = Promise.resolve()

  function sandboxOf(...args: Parameters<typeof startMachine>): Promise<Sandbox> {
    if (closed) throw new IsolationError('start_failed', 'The driver was closed.')
    const coming = startMachine(...args)
    const settled: Promise<unknown> = coming.catch(() => undefined).then(() => starts.delete(settled))
    starts.add(settled)
    return coming
  }

  async function startMachine(
    limits: SandboxLimits,
    requests: FirecrackerRequest[],
    { times, fillers }: { times: number; fillers: (root: string) => JailFiller[] },
    deadlineMs: number,
  ): Promise<Sandbox> {
    const until = performance.now() + deadlineMs
    const programs = await requireParts(options, requests)
    mounted = mounted.catch(() => undefined).then(() => inMemory(base))
    await mounted
    const machine = await jailedMachine({
      ...programs,
      id: newOwnedId('firecracker'),
      base,
      limits: groupOf(limits, image, times),
      attemptMs: 1000 * slowness,
    })
    machines.set(machine, undefined)
    const remove = async () => {
      machines.delete(machine)
      await machine.remove()
    }
    try {
      if (closed) throw new IsolationError('start_failed', 'The driver was closed.')
      const own = fillers(machine.root)
      for (const filler of own) await machine.fill(filler, until)
      await machine.start(requests, until)
      const key = () => keyOf(options, limits)
      const sandbox = await machineSandbox({ machine, limits, heartbeatMs, slowness, until, key, snapshots, remove })
      // It has read them, or holds them; what is no longer named is given back with its end.
      for (const file of own.flatMap(({ files }) => files)) await rm(join(machine.root, file))
      machines.set(machine, sandbox)
      // One that ended by itself gives back its jail, which is memory.
      void sandbox.ended.then(() => sandbox.stop()).catch(() => undefined)
      return sandbox
    } catch (error) {
      await remove()
      throw error
    }
  }

  const driver: Driver = {
    backend: 'firecracker',
    probe: deadlineMs => probe(driver, options, deadlineMs),
    async prepare() {},
    start: (limits, deadlineMs) =>
      sandboxOf(
        limits,
        bootRequests(limits, image),
        { times: 2, fillers: root => bootFillers(options, root) },
        deadlineMs,
      ),
    async restore(ref: SnapshotRef, deadlineMs) {
      if (ref.backend !== 'firecracker' || ref.key !== (await keyOf(options, ref.limits))) {
        throw new IsolationError('start_failed', 'The snapshot was taken with another firecracker, image or size.')
      }
      const { sealKey } = ref
      if (sealKey === undefined) throw new IsolationError('start_failed', 'The snapshot has no key.')
      return sandboxOf(
        ref.limits,
        restoreRequests(),
        { times: 3, fillers: root => restoreFillers(ref.folder, sealKey, root) },
        deadlineMs,
      )
    },
    reap: () => reap(mounts, snapshots),
    async close() {
      closed = true
      // One that is starting fails by itself, and removes what it made.
      await Promise.all([...machines].map(([machine, sandbox]) => (sandbox ? sandbox.stop() : machine.kill())))
      await Promise.all(starts)
      await Promise.all([...machines.values()].map(sandbox => sandbox?.stop()))
      await mounted.catch(() => undefined)
      await outOfMemory(base)
    },
  }
  return driver
}

/** Each thing that is missing, as a sentence. Empty: worth trying. */
async function missing({ binary = 'firecracker', jailer = 'jailer', device }: FirecrackerOptions): Promise<string[]> {
  const trouble = await kvmTrouble(device)
  return [
    ...((await findProgram(binary)) ? [] : ['The firecracker binary was not found (looked in FIRECRACKER_BIN, PATH).']),
    ...((await findProgram(jailer))
      ? []
      : ['The jailer of firecracker was not found (looked in FIRECRACKER_JAILER, PATH).']),
    ...(trouble === undefined ? [] : [trouble]),
    ...(process.getuid?.() === 0 ? [] : ['The jailer needs root.']),
  ]
}

async function requireParts(
  options: FirecrackerOptions,
  requests: readonly FirecrackerRequest[],
): Promise<{ firecracker: string; jailer: string }> {
  const { binary = 'firecracker', jailer = 'jailer' } = options
  const lacking = await missing(options)
  if (lacking.length > 0)
    throw new IsolationError('isolation_unavailable', `Nothing was run under firecracker. ${lacking.join(' ')}`)
  const fault = requests.map(requestFault).find(text => text !== undefined)
  if (fault !== undefined) throw new IsolationError('start_failed', `Firecracker makes no such machine: ${fault}`)
  return {
    // The jailer follows a link, and names its folder after the target.
    firecracker: await realpath((await findProgram(binary))!),
    jailer: (await findProgram(jailer))!,
  }
}

/**
 * Times the memory of the machine: its own, and what it writes of itself, which stays in memory until it was sealed. Of a
 * machine that was brought back the file that it came from stays too.
 */
const groupOf = (limits: SandboxLimits, image: GuestImage, times: number): CgroupLimits => ({
  memoryBytes: (times * ramMbOf(limits, image) + VMM_OVERHEAD_MB) * 1024 * 1024,
  pids: TASKS,
  cpuQuota: Math.round(limits.cpus * CPU_PERIOD),
})

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
  for (const program of await names(folder)) ids.push(...(await names(join(folder, program))))
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
