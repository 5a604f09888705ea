import { realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { GuestImage } from '../../guest/image-manifest.ts'
import { IsolationError, type Sandbox, type SandboxLimits } from '../driver.ts'
import { findProgram } from '../find-program.ts'
import { kvmTrouble } from '../kvm.ts'
import { type CgroupLimits, CPU_PERIOD } from '../oci/cgroups.ts'
import { newOwnedId } from '../owned-id.ts'
import { ramMbOf } from '../qemu/machine.ts'
import { inMemory, outOfMemory } from './in-memory.ts'
import { type JailedMachine, type JailFiller, jailedMachine } from './jailed-machine.ts'
import { type FirecrackerRequest, requestFault } from './requests.ts'

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
  /** The most machines that wait, paused, of all kinds together. */
  poolSize?: number
}

/** What a machine begins with. */
export interface Beginning {
  requests: FirecrackerRequest[]
  fillers: (root: string) => JailFiller[]
  /** Its group's memory, in times of the machine's own. */
  times: number
  /** Called when it is gone, unless the driver is being closed. */
  gone?: () => void
}

const VMM_OVERHEAD_MB = 32
const TASKS = 64

export type FirecrackerMachines = ReturnType<typeof firecrackerMachines>

/** The machines of one driver, each in a jail in `base`, which is in memory. */
export function firecrackerMachines(options: FirecrackerOptions, base: string) {
  const { image, slowness = 1 } = options
  /** From the beginning of a start; with its sandbox once there is one. */
  const machines = new Map<JailedMachine, Sandbox | undefined>()
  const whenGone = new WeakMap<JailedMachine, () => void>()
  let closed = false
  /** One at a time, as a second mount would hide the jails in the first. */
  let mounted: Promise<void> = Promise.resolve()

  async function drop(machine: JailedMachine): Promise<void> {
    machines.delete(machine)
    await machine.remove()
    if (!closed) whenGone.get(machine)?.()
  }

  function requireOpen(): void {
    if (closed) throw new IsolationError('start_failed', 'The driver was closed.')
  }

  return {
    drop,
    requireOpen,

    /** A machine that runs, to which nothing is connected. */
    async launch(limits: SandboxLimits, beginning: Beginning, until: number): Promise<JailedMachine> {
      const { requests, fillers, times, gone } = beginning
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
      if (gone) whenGone.set(machine, gone)
      try {
        requireOpen()
        const own = fillers(machine.root)
        for (const filler of own) await machine.fill(filler, until)
        await machine.start(requests, until)
        // It has read them, or holds them; what is no longer named is given back with its end.
        for (const file of own.flatMap(({ files }) => files)) await rm(join(machine.root, file))
        return machine
      } catch (error) {
        await drop(machine)
        throw error
      }
    },

    /** One that ended by itself gives back its jail, which is memory. */
    hold(machine: JailedMachine, sandbox: Sandbox): void {
      machines.set(machine, sandbox)
      void sandbox.ended.then(() => sandbox.stop()).catch(() => undefined)
    },

    /** Ends them all, once what is beginning has settled: one that is starting fails by itself, and removes what it made. */
    async close(settled: () => Promise<unknown>): Promise<void> {
      closed = true
      const settling = settled()
      await Promise.all([...machines].map(([machine, sandbox]) => (sandbox ? sandbox.stop() : machine.kill())))
      await settling
      await Promise.all([...machines.values()].map(sandbox => sandbox?.stop()))
      await mounted.catch(() => undefined)
      await outOfMemory(base)
    },
  }
}

/** Each thing that is missing, as a sentence. Empty: worth trying. */
export async function missing({
  binary = 'firecracker',
  jailer = 'jailer',
  device,
}: FirecrackerOptions): Promise<string[]> {
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
