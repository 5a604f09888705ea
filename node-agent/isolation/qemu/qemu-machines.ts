import { randomBytes } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import type { GuestImage } from '../../guest/image-manifest.ts'
import type { Accel, SandboxLimits } from '../driver.ts'
import { type GuestChannel, guestChannel } from '../guest-channel.ts'
import { type CgroupLimits, CPU_PERIOD, TMP_MB } from '../oci/cgroups.ts'
import { newOwnedId } from '../owned-id.ts'
import { withDeadline } from '../with-deadline.ts'
import { FDS, QEMU_OVERHEAD_MB, type Ram, ramMbOf } from './machine.ts'
import { giveToQemu, type QemuProcess, ramFolder, startQemu, takeRamFolder } from './qemu-process.ts'
import { giveSealed, type SavedState } from './saved-state.ts'

export interface QemuOptions {
  image: GuestImage
  /** Given by the operator, never chosen: `tcg` is software emulation, for development. */
  accel: Accel
  binary?: string
  heartbeatMs?: number
  /** How many times longer than on hardware the host waits for what a guest's kernel does: it may be emulated. */
  slowness?: number
  /** The most machines that wait, paused, of all kinds together. */
  poolSize?: number
  /** For snapshots that outlive a sandbox. */
  stateDir: string
}

export interface Machine {
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
const QEMU_TASKS = 64

export const ramIn = (folder: string) => join(folder, 'ram')

export type QemuMachines = ReturnType<typeof qemuMachines>

/** The machines of one driver: each a process in a folder of its own, with a channel to its agent. */
export function qemuMachines(options: QemuOptions) {
  const { image, slowness = 1 } = options
  const bootMs = BOOT_MS * slowness
  const cloneMs = CLONE_MS * slowness
  const machines = new Set<Machine>()
  const folders = new Set<string>()

  async function newFolder(id: string): Promise<string> {
    const folder = join(await takeRamFolder(await ramFolder()), id)
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
      const machine = await started(options, {
        id,
        folder,
        ramMb,
        cpus,
        ram: from?.ram,
        state: from && (file?.fd ?? 'pipe'),
      })
      machines.add(machine)
      return machine
    } catch (error) {
      await dropFolder(folder)
      throw error
    } finally {
      await file?.close()
    }
  }

  return {
    bootMs,
    cloneMs,
    launch,
    drop,
    dropFolder,

    /** Ends a machine and keeps its folder, which clones read. */
    async retire(machine: Machine, reason: string): Promise<void> {
      await machine.channel.close(reason)
      await machine.qemu.remove()
      machines.delete(machine)
    },

    async bringBack(limits: SandboxLimits, from: { ram: Ram; state: SavedState }): Promise<Machine> {
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
    },

    greet,

    async runOnce({ channel }: Machine): Promise<void> {
      await (await channel.exec({ argv: ['true'], deadlineMs: bootMs, outputBytes: 1 })).exit
      await channel.ping()
    },

    /** One that is still booting would otherwise take its whole deadline. */
    killAll(): void {
      for (const { qemu } of machines) qemu.kill()
    },

    async dropAll(): Promise<void> {
      await Promise.all([...machines].map(drop))
      await Promise.all([...folders].map(dropFolder))
    },
  }
}

interface Launched {
  id: string
  folder: string
  ramMb: number
  cpus: number
  ram: Ram | undefined
  /** Where it reads its state from; undefined for one that boots. */
  state: number | 'pipe' | undefined
}

/** The process of a machine, and the channel to its agent. */
async function started(
  { image, accel, binary = 'qemu-system-x86_64', heartbeatMs = 5000, slowness = 1 }: QemuOptions,
  { id, folder, ramMb, cpus, ram = { kind: 'shared', path: ramIn(folder) }, state }: Launched,
): Promise<Machine> {
  const cgroup = cgroupOf(ram.kind === 'copy-on-write' ? 2 * ramMb : ramMb, cpus)
  const qemu = await startQemu({
    binary,
    machine: { id, accel, image, ramMb, ram, incoming: state !== undefined },
    ...(state !== undefined && { state }),
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
  return { id, qemu, folder, channel, ended }
}

/**
 * Twice the memory of the machine for a clone: the kernel fills a page that the template's file lacks before it copies it, and charges both to
 * the first machine that writes to it.
 */
function cgroupOf(memoryMb: number, cpus: number): CgroupLimits | undefined {
  if (process.getuid?.() !== 0) return undefined
  return {
    memoryBytes: (memoryMb + QEMU_OVERHEAD_MB) * 1024 * 1024,
    pids: QEMU_TASKS,
    cpuQuota: Math.round(cpus * CPU_PERIOD),
  }
}

/** New name, new entropy, the time of now, and the limits: each time a machine begins to run. */
async function greet(machine: Machine, limits: SandboxLimits, deadlineMs: number, session = machine.id) {
  const greeted = machine.channel.hello(helloOf(session, limits), deadlineMs)
  greeted.catch(() => undefined)
  await machine.qemu.qmp.run('cont')
  return greeted
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
