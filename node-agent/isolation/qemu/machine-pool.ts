import { join } from 'node:path'
import type { SandboxLimits } from '../driver.ts'
import { ramMbOf } from './machine.ts'
import { type Machine, type QemuMachines, type QemuOptions, ramIn } from './qemu-machines.ts'
import { type SavedState, saveState } from './saved-state.ts'

/** What machines are made from; no session has run in it, so it is in clear. */
interface Template {
  ramPath: string
  state: SavedState
}

/** Machines that wait, paused, and the templates that they are clones of. */
export function machinePool(machines: QemuMachines, { image, poolSize = 2 }: Pick<QemuOptions, 'image' | 'poolSize'>) {
  const { bootMs, cloneMs, launch, drop, greet, runOnce } = machines
  const templates = new Map<number, Promise<Template>>()
  const pools = new Map<string, Promise<Machine>[]>()
  let closed = false

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
    const { ramPath, state } = await templateOf(ramMbOf(limits, image))
    return machines.bringBack(limits, { ram: { kind: 'copy-on-write', path: ramPath }, state })
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

  const keyOf = (limits: SandboxLimits) => `${image.digest}:${limits.cpus}:${ramMbOf(limits, image)}`

  function refill(limits: SandboxLimits): Promise<unknown> {
    const pool = pools.get(keyOf(limits))
    if (pool === undefined || closed) return Promise.resolve()
    while (pool.length < poolSize) {
      const machine = clone(limits).then(machine => warmUp(machine, limits))
      pool.push(machine)
      machine.catch(() => pool.splice(pool.indexOf(machine), 1))
    }
    return Promise.all(pool)
  }

  return {
    clone,
    refill,
    async prepare(limits: SandboxLimits): Promise<void> {
      const key = keyOf(limits)
      if (!pools.has(key)) pools.set(key, [])
      await refill(limits)
    },
    /** One that waits, if there is one. */
    take: (limits: SandboxLimits): Promise<Machine> | undefined => pools.get(keyOf(limits))?.shift(),
    async close(): Promise<void> {
      closed = true
      machines.killAll()
      await Promise.allSettled([...pools.values()].flat())
      await Promise.allSettled([...templates.values()])
    },
  }
}
