import { join } from 'node:path'
import type { SandboxLimits } from '../driver.ts'
import { templateShelf } from '../standby-pool.ts'
import { giveBackZeros, heldBytes } from '../tmpfs.ts'
import { ramMbOf } from './machine.ts'
import { type Machine, type QemuMachines, type QemuOptions, ramIn } from './qemu-machines.ts'
import { type SavedState, saveState } from './saved-state.ts'

/** What machines are made from; no session has run in it, so it is in clear. */
interface Template {
  folder: string
  ramPath: string
  state: SavedState
  /** What the file took when it was made. */
  bytes: number
}

/** Machines that begin where another had booted: one template for each size of memory. */
export function machineClones(machines: QemuMachines, { image }: Pick<QemuOptions, 'image'>) {
  const { bootMs, cloneMs, launch, drop, greet, runOnce } = machines
  const templates = templateShelf<Template>(({ folder }) => machines.dropFolder(folder))
  /** One file after another. */
  let thinned: Promise<unknown> = Promise.resolve()

  /** Boots once, and keeps the memory and the state of the machine at the moment in which its agent answered. */
  async function bootTemplate(ramMb: number): Promise<Template> {
    const machine = await launch(ramMb, 2)
    try {
      await greet(machine, { memoryMb: 32, cpus: 1, pids: 16, diskMb: 8 }, bootMs)
      await runOnce(machine)
      await machine.qemu.qmp.run('stop')
      const state = { path: join(machine.folder, 'state') }
      await saveState(machine.qemu.qmp, machine.folder, state, cloneMs)
      await machines.retire(machine, 'the template was taken')
      const ramPath = ramIn(machine.folder)
      return { folder: machine.folder, ramPath, state, bytes: await heldBytes(ramPath) }
    } catch (error) {
      await drop(machine)
      throw error
    }
  }

  async function cloneOf({ ramPath, state, bytes }: Template, limits: SandboxLimits): Promise<Machine> {
    const machine = await machines.bringBack(limits, { ram: { kind: 'copy-on-write', path: ramPath }, state })
    void machine.ended.then(() => {
      thinned = thinned.then(() => giveBackZeros(ramPath, bytes, bootMs)).catch(() => undefined)
    })
    return machine
  }

  function clone(limits: SandboxLimits): Promise<Machine> {
    const ramMb = ramMbOf(limits, image)
    return templates.use(
      String(ramMb),
      () => bootTemplate(ramMb),
      template => cloneOf(template, limits),
    )
  }

  return {
    clone,

    /** One that waits, paused. It has run a command already, so that what the next one needs is translated: 40 ms become a few. */
    async waiting(limits: SandboxLimits): Promise<Machine> {
      const machine = await clone(limits)
      try {
        await greet(machine, limits, cloneMs, `${machine.id}-waiting`)
        await runOnce(machine)
        await machine.qemu.qmp.run('stop')
        return machine
      } catch (error) {
        await drop(machine)
        throw error
      }
    },

    keyOf: (limits: SandboxLimits) => `${image.digest}:${limits.cpus}:${ramMbOf(limits, image)}`,
    settled: templates.settled,
  }
}
