import { rm } from 'node:fs/promises'
import type { SessionVm } from '../runtime/execution/sandbox/sandboxes.ts'
import type { Log } from '../shared/log/log.ts'
import { type Driver, IsolationError, type Sandbox, type SandboxLimits, type SnapshotRef } from './isolation/driver.ts'

export interface MachineSpec {
  driver: Driver
  limits: SandboxLimits
  /** Without a turn for so long, it is put away. */
  idleMs: number
}

interface Held extends MachineSpec {
  sandbox: Sandbox | undefined
  /** What it was when it was put away. */
  snapshot: SnapshotRef | undefined
  vm: SessionVm
  /** Turns that use it now. */
  uses: number
  timer: NodeJS.Timeout | undefined
  /** One change at a time: a turn that comes while it is put away waits for that. */
  last: Promise<unknown>
}

const START_MS = 30_000
const OTHER = 'the machine of this session is in use by another turn, and of another image: start the turn again later'

/**
 * One machine for each session: it stays between turns, is saved when the session is idle for a while, and resumes with
 * the next turn. A machine that can neither stay nor be saved, or whose image was replaced, is started again from the saved workspace.
 */
export function sessionMachines({ log }: { log: Log }) {
  const all = new Map<string, Held>()

  function hold(id: string, wanted: MachineSpec): Held {
    const known = all.get(id)
    if (known) return known
    const vm: SessionVm = { backend: wanted.driver.backend, state: 'released', acquiredMs: 0 }
    const held: Held = {
      ...wanted,
      vm,
      sandbox: undefined,
      snapshot: undefined,
      uses: 0,
      timer: undefined,
      last: Promise.resolve(),
    }
    all.set(id, held)
    return held
  }

  async function release(id: string): Promise<void> {
    const held = all.get(id)
    if (!held) return
    all.delete(id)
    clearTimeout(held.timer)
    await inTurn(held, async () => {
      const { sandbox } = held
      held.sandbox = undefined
      await sandbox?.stop()
      await dropSnapshot(held)
    })
  }

  return {
    /** A machine for a session that begins. */
    async acquire(id: string, wanted: MachineSpec): Promise<SessionVm> {
      const held = hold(id, wanted)
      try {
        await inTurn(held, () => running(log, held))
      } catch (error) {
        await release(id)
        throw error
      }
      rest(log, held)
      return held.vm
    },

    /** The machine for a turn; `done` is called at its end. */
    async use(id: string, wanted: MachineSpec): Promise<{ sandbox: Sandbox; fresh: boolean; done: () => void }> {
      const before = all.get(id)
      if (before && before.driver !== wanted.driver) {
        if (before.uses > 0) throw new IsolationError('start_failed', OTHER)
        await release(id)
      }
      const held = hold(id, wanted)
      held.uses++
      clearTimeout(held.timer)
      let over = false
      const done = () => {
        if (over) return
        over = true
        held.uses--
        if (held.uses === 0 && all.get(id) === held) rest(log, held)
      }
      try {
        return { ...(await inTurn(held, () => running(log, held))), done }
      } catch (error) {
        done()
        throw error
      }
    },

    of: (id: string): SessionVm | undefined => all.get(id)?.vm,
    release,
    close: async () => void (await Promise.all([...all.keys()].map(release))),
  }
}

/** Its machine, and whether it is a new one, which knows nothing of earlier turns. */
async function running(log: Log, held: Held): Promise<{ sandbox: Sandbox; fresh: boolean }> {
  if (held.sandbox) return { sandbox: held.sandbox, fresh: false }
  const began = performance.now()
  const { driver, limits, snapshot } = held
  let sandbox: Sandbox | undefined
  if (snapshot) {
    sandbox = await driver.restore(snapshot, START_MS).catch((error: unknown) => {
      log.warn('the machine of a session could not be brought back', { error })
      return undefined
    })
    await dropSnapshot(held)
  }
  const fresh = sandbox === undefined
  sandbox ??= await driver.start(limits, START_MS)
  held.sandbox = sandbox
  held.vm = {
    backend: driver.backend,
    state: sandbox.pooled || !fresh ? 'warm' : 'cold',
    acquiredMs: Math.round((performance.now() - began) * 10) / 10,
  }
  void sandbox.ended.then(() => {
    if (held.sandbox === sandbox) Object.assign(held, { sandbox: undefined, vm: { ...held.vm, state: 'released' } })
  })
  return { sandbox, fresh }
}

async function putAway(log: Log, held: Held): Promise<void> {
  const { sandbox } = held
  if (!sandbox || held.uses > 0) return
  held.snapshot = await sandbox.snapshot().catch((error: unknown) => {
    if (!(error instanceof IsolationError && error.code === 'unsupported')) {
      log.warn('the machine of a session could not be recorded', { error })
    }
    return undefined
  })
  held.sandbox = undefined
  held.vm = { ...held.vm, state: 'released' }
  await sandbox.stop()
}

function rest(log: Log, held: Held): void {
  clearTimeout(held.timer)
  held.timer = setTimeout(() => void inTurn(held, () => putAway(log, held)).catch(() => undefined), held.idleMs)
  held.timer.unref()
}

async function dropSnapshot(held: Held): Promise<void> {
  const { snapshot } = held
  held.snapshot = undefined
  snapshot?.sealKey?.fill(0)
  if (snapshot) await rm(snapshot.folder, { recursive: true, force: true })
}

function inTurn<T>(held: Held, act: () => Promise<T>): Promise<T> {
  const mine = held.last.then(act, act)
  held.last = mine.catch(() => undefined)
  return mine
}
