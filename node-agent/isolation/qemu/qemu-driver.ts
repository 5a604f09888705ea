import { randomBytes } from 'node:crypto'
import { open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import type { GuestImage } from '../../guest/image-manifest.ts'
import {
  type Accel,
  type Driver,
  IsolationError,
  type Reaped,
  type Sandbox,
  type SandboxLimits,
  type SnapshotRef,
} from '../driver.ts'
import { type GuestChannel, guestChannel } from '../guest-channel.ts'
import { qemuKvmTrouble } from '../kvm.ts'
import { type CgroupLimits, CPU_PERIOD, listGroups, removeGroup, TMP_MB } from '../oci/cgroups.ts'
import { isOrphan, newOwnedId } from '../owned-id.ts'
import { probeByRun } from '../probe-by-run.ts'
import { runTool } from '../run-tool.ts'
import { sandboxFiles } from '../sandbox-files.ts'
import { withDeadline } from '../with-deadline.ts'
import { FDS, QEMU_OVERHEAD_MB, type Ram, ramMbOf, stateKey } from './machine.ts'
import { killNamed } from './named-process.ts'
import { giveToQemu, type QemuProcess, ramFolder, startQemu } from './qemu-process.ts'
import { giveSealed, type SavedState, saveState } from './saved-state.ts'

export interface QemuOptions {
  image: GuestImage
  /** Given by the operator, never chosen: `tcg` is software emulation, for development. */
  accel: Accel
  binary?: string
  heartbeatMs?: number
  /** How many times longer than on hardware the host waits for what a guest's kernel does: it may be emulated. */
  slowness?: number
  /** Machines that wait, paused, for each set of limits that was prepared. */
  poolSize?: number
  /** For snapshots that outlive a sandbox. */
  stateDir: string
}

/** What machines are made from; no session has run in it, so it is in clear. */
interface Template {
  ramPath: string
  state: SavedState
}

interface Machine {
  id: string
  qemu: QemuProcess
  folder: string
  channel: GuestChannel
  /** Settles when the channel is gone, with the reason. */
  ended: Promise<string>
}

/** Emulated, a kernel takes about two seconds; a machine that shares its processors may take many. */
const BOOT_MS = 30_000
const CLONE_MS = 10_000
const KILL_GRACE_MS = 1000
const FILE_MS = 20_000
const QEMU_TASKS = 64

const ramIn = (folder: string) => join(folder, 'ram')

export function qemuDriver(options: QemuOptions): Driver {
  const { image, accel, binary = 'qemu-system-x86_64', heartbeatMs = 5000, poolSize = 2, stateDir } = options
  const { slowness = 1 } = options
  const bootMs = BOOT_MS * slowness
  const cloneMs = CLONE_MS * slowness
  const snapshots = join(stateDir, 'qemu', 'snapshots')
  const templates = new Map<number, Promise<Template>>()
  const pools = new Map<string, Promise<Machine>[]>()
  const machines = new Set<Machine>()
  const folders = new Set<string>()
  let closed = false
  let version: Promise<string> | undefined

  const versionOf = () => {
    version ??= runTool(binary, ['--version'], 5000).then(({ stdout }) => stdout.split('\n')[0] ?? '')
    return version
  }
  const cgroupOf = (ramMb: number, cpus: number): CgroupLimits | undefined =>
    process.getuid?.() === 0
      ? {
          memoryBytes: (ramMb + QEMU_OVERHEAD_MB) * 1024 * 1024,
          pids: QEMU_TASKS,
          cpuQuota: Math.round(cpus * CPU_PERIOD),
        }
      : undefined

  async function newFolder(id: string): Promise<string> {
    const folder = join(await ramFolder(), id)
    await makeFolder(folder, 0o711)
    await giveToQemu(folder)
    folders.add(folder)
    return folder
  }

  async function dropFolder(folder: string): Promise<void> {
    folders.delete(folder)
    await rm(folder, { recursive: true, force: true })
  }

  async function drop(machine: Machine): Promise<void> {
    machines.delete(machine)
    await machine.channel.close('the machine was ended')
    await machine.qemu.remove()
    await dropFolder(machine.folder)
  }

  /** A clone is given its state; the template makes memory of its own in its folder. */
  async function launch(ramMb: number, cpus: number, from?: { ram: Ram; state: SavedState }): Promise<Machine> {
    const id = newOwnedId('qemu')
    const folder = await newFolder(id)
    const file = from && from.state.key === undefined ? await open(from.state.path, 'r') : undefined
    try {
      const cgroup = cgroupOf(ramMb, cpus)
      const ram: Ram = from?.ram ?? { kind: 'shared', path: ramIn(folder) }
      const qemu = await startQemu({
        binary,
        machine: { id, accel, image, ramMb, ram, incoming: from !== undefined },
        ...(from && { state: file?.fd ?? 'pipe' }),
        ...(cgroup && { cgroup }),
      })
      const { promise: ended, resolve: end } = Promise.withResolvers<string>()
      const channel = guestChannel({
        input: qemu.agent,
        output: qemu.agent,
        heartbeatMs: heartbeatMs * slowness,
        killGraceMs: KILL_GRACE_MS * slowness,
        kill: () => qemu.kill(),
        ended: end,
      })
      const machine: Machine = { id, qemu, folder, channel, ended }
      machines.add(machine)
      return machine
    } catch (error) {
      await dropFolder(folder)
      throw error
    } finally {
      await file?.close()
    }
  }

  /** Boots once, and keeps the memory and the state of the machine at the moment in which its agent answered. */
  async function bootTemplate(ramMb: number): Promise<Template> {
    const machine = await launch(ramMb, 2)
    try {
      await greet(machine, { memoryMb: 32, cpus: 1, pids: 16, diskMb: 8 }, bootMs)
      await runOnce(machine)
      await machine.qemu.qmp.run('stop')
      const state = { path: join(machine.folder, 'state') }
      await saveState(machine.qemu.qmp, machine.folder, state, cloneMs)
      await machine.channel.close('the template was taken')
      await machine.qemu.remove()
      machines.delete(machine)
      // Its folder stays: clones read it.
      return { ramPath: ramIn(machine.folder), state }
    } catch (error) {
      await drop(machine)
      throw error
    }
  }

  function templateOf(ramMb: number): Promise<Template> {
    let template = templates.get(ramMb)
    if (template === undefined) {
      template = bootTemplate(ramMb)
      templates.set(ramMb, template)
      template.catch(() => templates.delete(ramMb))
    }
    return template
  }

  async function clone(limits: SandboxLimits): Promise<Machine> {
    const ramMb = ramMbOf(limits, image)
    const { ramPath, state } = await templateOf(ramMb)
    return bringBack(limits, { ram: { kind: 'copy-on-write', path: ramPath }, state })
  }

  async function bringBack(limits: SandboxLimits, from: { ram: Ram; state: SavedState }): Promise<Machine> {
    const machine = await launch(ramMbOf(limits, image), limits.cpus, from)
    try {
      const { qmp, state: pipe } = machine.qemu
      const { path, key } = from.state
      const given = key && pipe ? giveSealed(path, key, pipe) : undefined
      const through = qmp.migrate('migrate-incoming', `fd:${FDS.state}`)
      // All the memory of a machine, not only its devices: as long as it may have taken to save.
      const deadlineMs = given ? bootMs : cloneMs
      await withDeadline(Promise.all([given, through]), deadlineMs, 'the state was not read')
      return machine
    } catch (error) {
      await drop(machine)
      throw error
    }
  }

  const poolKey = (limits: SandboxLimits) => `${image.digest}:${limits.cpus}:${ramMbOf(limits, image)}`

  function refill(limits: SandboxLimits): Promise<unknown> {
    const pool = pools.get(poolKey(limits))
    if (pool === undefined || closed) return Promise.resolve()
    while (pool.length < poolSize) {
      const machine = clone(limits).then(machine => warmUp(machine, limits))
      pool.push(machine)
      machine.catch(() => pool.splice(pool.indexOf(machine), 1))
    }
    return Promise.all(pool)
  }

  const helloOf = (session: string, { memoryMb, diskMb, pids }: SandboxLimits) => ({
    now: new Date(),
    entropy: randomBytes(32),
    session,
    diskMb,
    tmpMb: TMP_MB,
    // Files of the workspace are charged to the process that writes them.
    memoryMb: memoryMb + diskMb + TMP_MB,
    pids,
  })

  /** New name, new entropy, the time of now, and the limits: each time a machine begins to run. */
  async function greet(machine: Machine, limits: SandboxLimits, deadlineMs: number, session = machine.id) {
    const greeted = machine.channel.hello(helloOf(session, limits), deadlineMs)
    greeted.catch(() => undefined)
    await machine.qemu.qmp.run('cont')
    return greeted
  }

  async function runOnce({ channel }: Machine): Promise<void> {
    await (await channel.exec({ argv: ['true'], deadlineMs: bootMs, outputBytes: 1 })).exit
    await channel.ping()
  }

  /** Ahead of its use, so that what it will run next is translated already: 40 ms of a hand-out become a few. */
  async function warmUp(machine: Machine, limits: SandboxLimits): Promise<Machine> {
    try {
      await greet(machine, limits, cloneMs, `${machine.id}-waiting`)
      await runOnce(machine)
      await machine.qemu.qmp.run('stop')
      return machine
    } catch (error) {
      await drop(machine)
      throw error
    }
  }

  async function wake(machine: Machine, limits: SandboxLimits, deadlineMs: number): Promise<Sandbox> {
    const { channel, ended } = machine
    const kernelRelease = await greet(machine, limits, deadlineMs).catch(async (error: unknown) => {
      await channel.close('it did not start')
      await drop(machine)
      throw error
    })
    let stopping: Promise<void> | undefined
    return {
      id: machine.id,
      backend: 'qemu',
      accel,
      kernelRelease,
      ended,
      exec: channel.exec,
      serve: channel.serve,
      ...sandboxFiles(channel.exec, FILE_MS * slowness),
      async snapshot() {
        if (channel.busy() > 0)
          throw new IsolationError('unsupported', 'A snapshot is taken between commands, not under one.')
        return save(machine, limits, () => channel.ping())
      },
      stop() {
        stopping ??= (async () => {
          await channel.close('the sandbox was stopped')
          await drop(machine)
        })()
        return stopping
      },
    }
  }

  /** Everything, memory too, in one sealed file; the machine pauses meanwhile. */
  async function save(machine: Machine, limits: SandboxLimits, flush: () => Promise<void>): Promise<SnapshotRef> {
    const key = stateKey(await versionOf(), { accel, image, ramMb: ramMbOf(limits, image) })
    // Named for this process: what it leaves behind is recognised as ownerless.
    const folder = join(snapshots, newOwnedId('qemu'))
    const sealKey = randomBytes(32)
    await makeFolder(folder, 0o700)
    try {
      await flush()
      await machine.qemu.qmp.run('stop')
      try {
        await saveState(machine.qemu.qmp, machine.folder, { path: join(folder, 'state'), key: sealKey }, bootMs)
      } finally {
        await machine.qemu.qmp.run('cont')
      }
      return { backend: 'qemu', key, folder, limits, sealKey }
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
  }

  const driver: Driver = {
    backend: 'qemu',
    async probe(deadlineMs) {
      const trouble = accel === 'kvm' ? await qemuKvmTrouble() : undefined
      if (trouble !== undefined) {
        return { backend: 'qemu', available: false, accel, reasons: [trouble.reason], install: [trouble.install] }
      }
      const probe = await probeByRun(driver, {
        binary,
        versionOf: text => /version (\S+)/.exec(text)?.[1],
        deadlineMs,
        ownKernel: true,
        verifiedBy: `booted the guest image with the accelerator ${accel}, and ran a command in it`,
        install: 'Install qemu-system-x86 (Debian: apt-get install qemu-system-x86).',
      })
      return { ...probe, accel }
    },

    async prepare(limits) {
      if (!pools.has(poolKey(limits))) pools.set(poolKey(limits), [])
      await refill(limits)
    },

    async start(limits, deadlineMs) {
      const until = performance.now() + deadlineMs
      const waiting = pools.get(poolKey(limits))?.shift()
      const late = `no machine within ${Math.round(deadlineMs)} ms`
      const coming = waiting ?? clone(limits)
      const machine = await withDeadline(coming, deadlineMs, late).catch((error: unknown) => {
        void coming.then(drop, () => undefined)
        throw error
      })
      const sandbox = await wake(machine, limits, until - performance.now())
      void refill(limits).catch(() => undefined)
      return { ...sandbox, pooled: waiting !== undefined }
    },

    async restore(ref, deadlineMs) {
      const until = performance.now() + deadlineMs
      const key = stateKey(await versionOf(), { accel, image, ramMb: ramMbOf(ref.limits, image) })
      if (ref.backend !== 'qemu' || ref.key !== key) {
        throw new IsolationError(
          'start_failed',
          'The snapshot was taken with another QEMU, accelerator, image or size.',
        )
      }
      if (ref.sealKey === undefined) throw new IsolationError('start_failed', 'The snapshot has no key.')
      const state = { path: join(ref.folder, 'state'), key: ref.sealKey }
      const coming = bringBack(ref.limits, { ram: { kind: 'empty' }, state })
      const machine = await withDeadline(coming, deadlineMs, `no machine within ${Math.round(deadlineMs)} ms`)
      return wake(machine, ref.limits, until - performance.now())
    },

    async reap() {
      const place = await ramFolder()
      const found = [...(await listGroups()), ...(await readdir(place).catch(() => []))]
      const orphans = [...new Set(found)].filter(id => isOrphan(id, 'qemu'))
      const reaped: Reaped[] = []
      for (const id of (await readdir(snapshots).catch(() => [])).filter(id => isOrphan(id, 'qemu'))) {
        await rm(join(snapshots, id), { recursive: true, force: true })
      }
      for (const id of orphans) {
        await killNamed(id)
        await removeGroup(id)
        await rm(join(place, id), { recursive: true, force: true })
        reaped.push({ backend: 'qemu', id })
      }
      return reaped
    },

    async close() {
      closed = true
      // One that is still booting would otherwise take its whole deadline.
      for (const { qemu } of machines) qemu.kill()
      await Promise.allSettled([...pools.values()].flat())
      await Promise.allSettled([...templates.values()])
      await Promise.all([...machines].map(drop))
      await Promise.all([...folders].map(dropFolder))
    },
  }
  return driver
}
