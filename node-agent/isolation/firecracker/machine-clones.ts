import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import type { GuestImage } from '../../guest/image-manifest.ts'
import { IsolationError, type SandboxLimits } from '../driver.ts'
import { ramMbOf } from '../qemu/machine.ts'
import { runTool } from '../run-tool.ts'
import { templateShelf } from '../standby-pool.ts'
import { giveBackZeros, heldBytes } from '../tmpfs.ts'
import type { FirecrackerMachines } from './firecracker-machines.ts'
import type { JailedMachine, JailFiller } from './jailed-machine.ts'
import { runOnce, type Timing } from './machine-sandbox.ts'
import { bootRequests, JAIL, processorsOf, restoreRequests, snapshotRequests } from './requests.ts'

/** Beside the folders of jails, which are named for the program. */
export const TEMPLATES = 'templates'

/** A kernel takes a tenth of a second; a machine that shares its processors may take much longer. */
const BOOT_MS = 30_000
const FILES = [JAIL.state, JAIL.memory]

interface Template {
  folder: string
  /** What the file of its memory took when it was made. */
  bytes: number
}

export interface CloneOptions {
  image: GuestImage
  /** In memory. */
  base: string
  machines: FirecrackerMachines
  timing: Timing
  bootFillers: (root: string) => JailFiller[]
}

/**
 * Machines that begin where another had booted: one template for each size and number of processors. No session has run in
 * it, so it is in clear. Its files belong to root, and Firecracker maps them for itself alone: no machine changes them.
 */
export function machineClones({ image, base, machines, timing, bootFillers }: CloneOptions) {
  const { launch, drop } = machines
  const templates = templateShelf<Template>(({ folder }) => rm(folder, { recursive: true, force: true }))
  let made = 0
  /** One file after another. */
  let thinned: Promise<unknown> = Promise.resolve()
  const bootMs = BOOT_MS * timing.slowness
  const keyOf = (limits: SandboxLimits) => `${processorsOf(limits)}-${ramMbOf(limits, image)}`

  async function makeTemplate(limits: SandboxLimits): Promise<Template> {
    const until = performance.now() + bootMs
    const beginning = { requests: bootRequests(limits, image), fillers: bootFillers, times: 2 }
    const machine = await launch({ ...limits, cpus: processorsOf(limits) }, beginning, until)
    try {
      await runOnce(machine, limits, timing, until)
      const [pause, create] = snapshotRequests()
      await machine.send([pause, create], bootMs)
      // One of this kind that was dropped may still be on its way out.
      const folder = await keepFiles(machine, join(base, TEMPLATES, `${keyOf(limits)}-${made++}`))
      return { folder, bytes: await heldBytes(join(folder, JAIL.memory)) }
    } finally {
      await drop(machine)
    }
  }

  function cloneOf({ folder, bytes }: Template, limits: SandboxLimits, until: number): Promise<JailedMachine> {
    const files = FILES.map(name => join(folder, name))
    const fillers = (root: string) => [{ command: 'ln', args: ['--', ...files, root], files: FILES, isShared: true }]
    const gone = () => {
      thinned = thinned.then(() => giveBackZeros(join(folder, JAIL.memory), bytes, bootMs)).catch(() => undefined)
    }
    return launch(limits, { requests: restoreRequests(), fillers, times: 3, gone }, until)
  }

  const clone = (limits: SandboxLimits, until: number): Promise<JailedMachine> =>
    templates.use(
      keyOf(limits),
      () => makeTemplate(limits),
      template => cloneOf(template, limits, until),
    )

  return {
    clone,
    keyOf: (limits: SandboxLimits) => `${keyOf(limits)}-${limits.cpus}`,

    /** One that waits, paused, with its kernel's pages at hand. */
    async waiting(limits: SandboxLimits): Promise<JailedMachine> {
      const until = performance.now() + 2 * bootMs
      const machine = await clone(limits, until)
      try {
        await runOnce(machine, limits, timing, until)
        const [pause] = snapshotRequests()
        await machine.send([pause], bootMs)
        return machine
      } catch (error) {
        await drop(machine)
        throw error
      }
    },

    async resume(machine: JailedMachine, deadlineMs: number): Promise<JailedMachine> {
      const [, , resume] = snapshotRequests()
      try {
        await machine.send([resume], deadlineMs)
        return machine
      } catch (error) {
        await drop(machine)
        throw error
      }
    },

    settled: async () => void (await Promise.all([templates.settled(), thinned])),
  }
}

/** Without the pages that hold nothing, which take memory in the jail. */
async function keepFiles({ root }: JailedMachine, folder: string): Promise<string> {
  await makeFolder(folder, 0o700)
  for (const name of FILES) {
    const copy = join(folder, name)
    const from = join(root, name)
    const { code, stderr } = await runTool('cp', ['--sparse=always', '--no-dereference', '--', from, copy], BOOT_MS)
    if (code !== 0) throw new IsolationError('start_failed', `A template could not be kept: ${stderr.trim()}`)
    await chmod(copy, 0o444)
  }
  return folder
}
