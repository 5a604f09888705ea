import { spawn } from 'node:child_process'
import { chmod, chown, lstat } from 'node:fs/promises'
import type { Duplex, Writable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import { IsolationError } from '../driver.ts'
import { kvmGroup } from '../kvm.ts'
import { HOST_IDS } from '../oci/bundle.ts'
import type { CgroupLimits } from '../oci/cgroups.ts'
import { createGroup, readBack, removeGroup } from '../oci/cgroups.ts'
import { isInMemory } from '../tmpfs.ts'
import { FDS, type MachineOptions, machineArgs } from './machine.ts'
import { type Qmp, qmpClient } from './qmp.ts'

export interface QemuProcess {
  qmp: Qmp
  agent: Duplex
  /** Where it takes the state that it starts from, if that comes through a pipe. */
  state: Writable | undefined
  /** Settles with QEMU's last words. */
  ended: Promise<string>
  kill(): void
  /** After its end: its control group. */
  remove(): Promise<void>
}

export interface QemuProcessOptions {
  binary: string
  machine: MachineOptions
  /** An open file with the state that it starts from, or that it comes through a pipe. */
  state?: number | 'pipe'
  /** Absent without root: memory is then bounded by the machine alone. */
  cgroup?: CgroupLimits
}

/** An id that no user has; also outside the range that containers map to. */
const QEMU_ID = HOST_IDS - 1

/** How long its end may take to be heard of, once something looks as though it had ended. */
const END_SEEN_MS = 500

const asRoot = () => process.getuid?.() === 0

/** Hands a file or folder to the user that QEMU runs as. */
export async function giveToQemu(path: string): Promise<void> {
  if (asRoot()) await chown(path, QEMU_ID, QEMU_ID)
}

/** Starts QEMU without rights, in a group whose limits were read back, and greets its control channel. */
export async function startQemu({ binary, machine, state: from, cgroup }: QemuProcessOptions): Promise<QemuProcess> {
  const gid = (machine.accel === 'kvm' ? await kvmGroup() : undefined) ?? QEMU_ID
  const child = spawn(binary, machineArgs(machine), {
    detached: true,
    // Of this process it would have the secrets, which a guest that took over QEMU could read.
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', from ?? 'ignore'],
    ...(asRoot() && { uid: QEMU_ID, gid }),
  })
  const agent = child.stdio[FDS.agent] as unknown as Duplex
  const qmp = qmpClient(child.stdio[FDS.control] as Duplex)
  const state = from === 'pipe' ? ((child.stdio as unknown[])[FDS.state] as Writable) : undefined
  // The writer gets the error; afterwards the connection may close at any time.
  state?.on('error', () => undefined)
  let said = ''
  child.stderr!.on('data', chunk => (said = (said + chunk).slice(-2000)))
  const ended = new Promise<string>(resolve => {
    child.once('error', error => resolve(error.message))
    child.once('exit', (code, signal) =>
      setImmediate(() => resolve(said.trim().split('\n').at(-1) || `QEMU ended with ${signal ?? `code ${code}`}`)),
    )
  })
  const kill = () => void child.kill('SIGKILL')
  const remove = async () => {
    kill()
    await ended
    if (cgroup !== undefined) await removeGroup(machine.id)
  }
  const orEnd = async <T>(work: Promise<T>): Promise<T> =>
    Promise.race([
      work,
      ended.then(reason => {
        throw new IsolationError('start_failed', `QEMU started no machine: ${reason}`)
      }),
    ])
  try {
    if (cgroup !== undefined && child.pid !== undefined) {
      await createGroup(machine.id, cgroup, child.pid)
      const found = await readBack(child.pid, machine.id, cgroup)
      if (typeof found === 'string') {
        // A machine that has ended stands in no group of its own any more: then its own words say why.
        await orEnd(wait(END_SEEN_MS))
        throw new IsolationError('limits_not_in_force', `Nothing was run under qemu: ${found}.`)
      }
    }
    await orEnd(qmp.run('qmp_capabilities'))
    const capabilities = ['x-ignore-shared', 'events'].map(capability => ({ capability, state: true }))
    await orEnd(qmp.run('migrate-set-capabilities', { capabilities }))
    return { qmp, agent, state, ended, kill, remove }
  } catch (error) {
    kill()
    // Its channel closes a moment before its last words are here, and those say why.
    const last = await ended
    await remove()
    if (error instanceof IsolationError) throw error
    throw new IsolationError('start_failed', `QEMU started no machine: ${last}`, { cause: error })
  }
}

/** A folder in memory for the memory of machines, where there is one. */
export async function ramFolder(): Promise<string> {
  return (await isInMemory('/dev/shm')) ? '/dev/shm/waybill-node' : '/tmp/waybill-node'
}

/** Makes that folder, or takes one that is this account's alone: who else may write to it could put other memory in the place of a machine's, or read it. */
export async function takeRamFolder(folder: string): Promise<string> {
  await makeFolder(folder, 0o711)
  const found = await lstat(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) {
    throw new IsolationError('start_failed', `Another account may write to ${folder}: remove it.`)
  }
  // QEMU walks through it as another account, whatever the umask is.
  await chmod(folder, 0o711)
  return folder
}
