import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import { IsolationError, type Sandbox, type SandboxLimits, type SnapshotRef } from '../driver.ts'
import { type GuestChannel, guestChannel } from '../guest-channel.ts'
import { TMP_MB } from '../oci/cgroups.ts'
import { newOwnedId } from '../owned-id.ts'
import { sandboxFiles } from '../sandbox-files.ts'
import { type JailedMachine, NoSocketError } from './jailed-machine.ts'
import { snapshotRequests } from './requests.ts'
import { newSealKey, SNAPSHOT_FILES, sealFiles } from './sealed-files.ts'

/** For a machine to write its memory, and for its agent to answer again. */
const SNAPSHOT_MS = 30_000
const RETRY_MS = 5
const KILL_GRACE_MS = 1000
const FILE_MS = 20_000

export interface Timing {
  heartbeatMs: number
  /** How many times longer than on hardware the host waits for what a guest's kernel does. */
  slowness: number
}

interface Greeting extends Timing {
  machine: JailedMachine
  limits: SandboxLimits
}

export interface MachineSandboxOptions extends Greeting {
  /** When its agent must have answered. */
  until: number
  /** What must be the same to bring it back. */
  key: () => Promise<string>
  snapshots: string
  remove: () => Promise<void>
}

/** A machine that runs, as the place for commands that it is once its agent has answered. */
export async function machineSandbox(options: MachineSandboxOptions): Promise<Sandbox> {
  const { machine, limits, slowness, key, snapshots, remove } = options
  const snapshotMs = SNAPSHOT_MS * slowness
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  const ports = new Map<number, (stream: Duplex) => void>()
  let channel: GuestChannel | undefined
  /** While the machine is written down and its channel is made anew: what comes meanwhile waits for that. */
  let renewal: Promise<void> | undefined
  /** Calls on their way to the agent. */
  const calls = new Set<Promise<unknown>>()

  async function greet(until: number): Promise<string> {
    const greeted = await greetedChannel(options, until, ports, (made, reason) => {
      if (made === channel) end(reason)
    })
    channel = greeted.made
    return greeted.kernelRelease
  }

  async function call<T>(use: (channel: GuestChannel) => Promise<T>): Promise<T> {
    while (renewal !== undefined) await renewal
    if (channel === undefined)
      throw new IsolationError('exec_failed', 'The sandbox has ended: it was lost while it was written down.')
    const made = use(channel)
    calls.add(made)
    return made.finally(() => calls.delete(made))
  }

  /** Whatever comes of it, the machine goes on with a new channel. */
  async function writeDownAndGoOn(before: GuestChannel, folder: string): Promise<Uint8Array> {
    await before.close('the machine is written down')
    const written = await writeDown(machine, folder, snapshotMs).then(
      sealKey => ({ sealKey }),
      (error: unknown) => ({ error }),
    )
    try {
      await greet(performance.now() + snapshotMs)
    } catch (error) {
      end('it was lost while it was written down')
      await machine.kill()
      throw error
    }
    if ('error' in written) throw written.error
    return written.sealKey
  }

  async function takeSnapshot(): Promise<SnapshotRef> {
    await Promise.allSettled(calls)
    const before = channel
    if (before === undefined) throw new IsolationError('start_failed', 'The sandbox has ended.')
    if (before.busy() > 0)
      throw new IsolationError('unsupported', 'A snapshot is taken between commands, not under one.')
    await before.ping()
    const madeKey = await key()
    // Named for this process: what it leaves behind is recognised as ownerless.
    const folder = join(snapshots, newOwnedId('firecracker'))
    await makeFolder(folder, 0o700)
    channel = undefined
    try {
      return { backend: 'firecracker', key: madeKey, folder, limits, sealKey: await writeDownAndGoOn(before, folder) }
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
  }

  const exec: Sandbox['exec'] = request => call(channel => channel.exec(request))
  const kernelRelease = await greet(options.until)
  let stopping: Promise<void> | undefined
  return {
    id: machine.id,
    backend: 'firecracker',
    accel: 'kvm',
    kernelRelease,
    ended,
    exec,
    async serve(port, accept) {
      await call(channel => channel.serve(port, accept))
      ports.set(port, accept)
    },
    ...sandboxFiles(exec, FILE_MS * slowness),
    async snapshot() {
      while (renewal !== undefined) await renewal
      const { promise, resolve } = Promise.withResolvers<void>()
      renewal = promise
      return takeSnapshot().finally(() => {
        renewal = undefined
        resolve()
      })
    },
    stop() {
      stopping ??= (async () => {
        await channel?.close('the sandbox was stopped')
        await remove()
      })()
      return stopping
    },
  }
}

/** A first command, which brings what each needs into memory; then nothing is connected to the machine. */
export async function runOnce(machine: JailedMachine, limits: SandboxLimits, timing: Timing, until: number) {
  const { made } = await greetedChannel({ machine, limits, ...timing }, until, new Map(), () => undefined)
  const command = await made.exec({ argv: ['true'], deadlineMs: until - performance.now(), outputBytes: 1 })
  await command.exit
  await made.ping()
  await made.close('it waits')
}

interface Greeted {
  made: GuestChannel
  kernelRelease: string
}

/**
 * Connects and greets. A snapshot resets the vsock of a machine, and before its version 1.16 Firecracker lets that reset
 * come behind a connection that is made as soon as it runs again: such a one is lost, and the next is not.
 */
async function greetedChannel(
  options: Greeting,
  until: number,
  ports: ReadonlyMap<number, (stream: Duplex) => void>,
  ended: (channel: GuestChannel, reason: string) => void,
): Promise<Greeted> {
  for (;;) {
    try {
      const greeted = await greetOnce(options, until, ended)
      for (const [port, accept] of ports) await greeted.made.serve(port, accept)
      return greeted
    } catch (error) {
      const isFinal =
        error instanceof NoSocketError || (error instanceof IsolationError && error.code !== 'start_failed')
      if (isFinal || options.machine.hasEnded() || performance.now() > until) throw error
      await wait(RETRY_MS)
    }
  }
}

async function greetOnce(
  { machine, limits, heartbeatMs, slowness }: Greeting,
  until: number,
  ended: (channel: GuestChannel, reason: string) => void,
): Promise<Greeted> {
  const socket = await machine.connect(until)
  const made = guestChannel({
    input: socket,
    output: socket,
    heartbeatMs: heartbeatMs * slowness,
    killGraceMs: KILL_GRACE_MS * slowness,
    kill: () => void machine.kill(),
    ended: reason => ended(made, reason),
  })
  const hello = {
    now: new Date(),
    entropy: randomBytes(32),
    session: newOwnedId('firecracker'),
    diskMb: limits.diskMb,
    tmpMb: TMP_MB,
    memoryMb: limits.memoryMb + limits.diskMb + TMP_MB,
    pids: limits.pids,
  }
  try {
    return { made, kernelRelease: await made.hello(hello, until - performance.now()) }
  } catch (error) {
    await made.close('it did not answer')
    throw error
  }
}

/** It pauses meanwhile; what it wrote is in memory until it is sealed. */
async function writeDown(machine: JailedMachine, folder: string, snapshotMs: number): Promise<Uint8Array> {
  const [pause, create, resume] = snapshotRequests()
  try {
    await machine.send([pause], snapshotMs)
    await machine.send([create], snapshotMs).finally(() => machine.send([resume], snapshotMs))
    const sealKey = newSealKey()
    await sealFiles(sealKey, machine.root, folder)
    return sealKey
  } finally {
    for (const file of SNAPSHOT_FILES) await rm(join(machine.root, file), { force: true })
  }
}
