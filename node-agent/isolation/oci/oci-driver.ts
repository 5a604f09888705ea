import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import type { GuestImage } from '../../guest/image-manifest.ts'
import type { Backend, Driver, Probe, Reaped, Sandbox, SandboxLimits } from '../driver.ts'
import { IsolationError } from '../driver.ts'
import { guestChannel } from '../guest-channel.ts'
import { isOrphan, newOwnedId } from '../owned-id.ts'
import { killGroup, runTool } from '../run-tool.ts'
import { sandboxFiles } from '../sandbox-files.ts'
import { bundleOf, HOST_IDS } from './bundle.ts'
import {
  type CgroupCounters,
  type CgroupLimits,
  type Count,
  CPU_PERIOD,
  killGroupMembers,
  listGroups,
  memoryBytesOf,
  readBack,
  removeGroup,
  TMP_MB,
} from './cgroups.ts'

/** How one OCI runtime differs from another. */
export interface OciFlavour {
  backend: Backend & ('runc' | 'gvisor')
  binary: string
  /** In front of the subcommand. */
  flags: readonly string[]
  /** The word that makes `delete` take a container that died; absent: its state is files named by its id, and they are removed. */
  deleteForce?: string
  detach: string
  /** Memory and tasks that the runtime needs for itself, inside the sandbox's own groups. */
  overheadMb: number
  pidsOf: (wanted: number) => number
  userNamespace: boolean
  /** Whether the filter of system calls is the bundle's; gVisor brings its own. */
  seccomp: boolean
  /** See BundleOptions. */
  rootAgent: boolean
  /** A file in its state on which it mounts what all its sandboxes share; it is mounted anew where it is missing. */
  sharedMount?: string
  /** What must be true of the first process, beyond its groups; a sentence says what is not. */
  confirm: (pid: number) => Promise<string | undefined>
  probe: (driver: Driver, deadlineMs: number) => Promise<Probe>
}

export interface OciOptions {
  image: GuestImage
  /** For state and bundles; on a file system that users of the host may walk through. */
  stateDir: string
  /** A folder that is seen read-only as /opt. */
  tools?: string
  heartbeatMs?: number
}

const STOP_MS = 10_000
const MOST_MOUNTS = 100

const PLUG = 'exec "$0" "$@" <&3 >&3 3<&-'

export function ociDriver(flavour: OciFlavour, options: OciOptions): Driver {
  const { backend, binary, flags } = flavour
  const { stateDir } = options
  const state = join(stateDir, backend, 'state')
  const bundles = join(stateDir, backend, 'bundles')
  const open = new Set<Sandbox>()
  const tool = (args: readonly string[], deadlineMs: number) =>
    runTool(binary, [...flags, '--root', state, ...args], deadlineMs)

  async function remove(id: string): Promise<void> {
    await killGroupMembers(id)
    if (flavour.deleteForce !== undefined) await tool(['delete', flavour.deleteForce, id], STOP_MS)
    await removeGroup(id)
    for (const name of await names(state)) {
      if (name.includes(id)) await rm(join(state, name), { recursive: true, force: true })
    }
    await rm(join(bundles, id), { recursive: true, force: true })
  }

  const driver: Driver = {
    backend,
    probe: deadlineMs => flavour.probe(driver, deadlineMs),

    async start(limits, deadlineMs) {
      const until = performance.now() + deadlineMs
      const id = newOwnedId(backend)
      const cgroup: CgroupLimits = {
        memoryBytes: memoryBytesOf(limits, flavour.overheadMb),
        pids: flavour.pidsOf(limits.pids),
        cpuQuota: Math.round(limits.cpus * CPU_PERIOD),
      }
      try {
        const container = { id, state, bundle: join(bundles, id), limits, cgroup }
        const sandbox = await started(container, flavour, options, until, () => {
          open.delete(sandbox)
          return remove(id)
        })
        open.add(sandbox)
        return sandbox
      } catch (error) {
        await remove(id)
        throw error
      }
    },

    async restore() {
      throw new IsolationError('unsupported', `A ${backend} sandbox cannot be restored.`)
    },

    async reap() {
      const [inState, inBundles, groups] = await Promise.all([names(state), names(bundles), listGroups()])
      const orphans = [...new Set([...inState, ...inBundles, ...groups])].filter(id => isOrphan(id, backend))
      const reaped: Reaped[] = []
      for (const id of orphans) {
        await remove(id)
        reaped.push({ backend, id })
      }
      return reaped
    },

    async close() {
      await Promise.all([...open].map(sandbox => sandbox.stop()))
      if (flavour.sharedMount !== undefined) await unmounted(join(state, flavour.sharedMount))
    },
  }
  return driver
}

interface Container {
  id: string
  state: string
  bundle: string
  limits: SandboxLimits
  cgroup: CgroupLimits
}

/** A container whose limits were read back and whose agent has answered. */
async function started(
  container: Container,
  flavour: OciFlavour,
  options: OciOptions,
  until: number,
  remove: () => Promise<void>,
): Promise<Sandbox> {
  const { id, limits, cgroup } = container
  const { backend } = flavour
  const { channel: socket, errors, pid } = await launch(container, flavour, options, until - performance.now())
  const counters = await confirmed(id, pid, cgroup, flavour).catch((error: unknown) => {
    socket.destroy()
    throw error
  })
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  const channel = guestChannel({
    input: socket,
    output: socket,
    heartbeatMs: options.heartbeatMs ?? 5000,
    kill: () => void killGroupMembers(id),
    ended: end,
    mark: () => counters.count(),
    hit: mark => counters.hitSince(mark as Count),
  })
  const kernelRelease = await channel.hello(
    {
      now: new Date(),
      entropy: randomBytes(32),
      session: id,
      diskMb: limits.diskMb,
      tmpMb: TMP_MB,
      memoryMb: limits.memoryMb,
      pids: limits.pids,
    },
    until - performance.now(),
  )
  let stopping: Promise<void> | undefined
  return {
    id,
    backend,
    kernelRelease,
    ended,
    exec: channel.exec,
    serve: channel.serve,
    ...sandboxFiles(channel.exec),
    async snapshot() {
      throw new IsolationError('unsupported', `A ${backend} sandbox cannot be snapshotted.`)
    },
    stop() {
      stopping ??= (async () => {
        await channel.close('the sandbox was stopped')
        errors.destroy()
        await remove()
      })()
      return stopping
    },
  }
}

/** Pipes only: a file as output would be written at an offset of the runtime's own. */
async function launch(
  { id, state, bundle, limits, cgroup }: Container,
  flavour: OciFlavour,
  { image, tools }: OciOptions,
  deadlineMs: number,
) {
  const { binary, flags } = flavour
  await makeFolder(state, 0o711)
  await makeFolder(bundle, 0o711)
  const config = bundleOf({
    rootfs: image.rootfs,
    limits,
    group: id,
    cgroup,
    seccomp: flavour.seccomp,
    rootAgent: flavour.rootAgent,
    ...(tools !== undefined && { tools }),
    ...(flavour.userNamespace && { hostIds: HOST_IDS }),
  })
  await writeFile(join(bundle, 'config.json'), JSON.stringify(config))
  const pidFile = join(bundle, 'pid')
  const args = ['--root', state, 'run', flavour.detach, '--bundle', bundle, '--pid-file', pidFile, id]
  // Node closes a child's standard input when the child ends, and the runtime ends as soon as the sandbox runs: so the
  // channel is a socket of its own, which the shell puts in place.
  const child = spawn('/bin/sh', ['-c', PLUG, binary, ...flags, ...args], {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  child.unref()
  const channel = child.stdio[3] as Duplex
  const errors = child.stderr!
  let said = ''
  errors.on('data', chunk => {
    if (said.length < 4096) said += chunk
  })
  const late = setTimeout(() => killGroup(child.pid), deadlineMs)
  const code = await new Promise<number | undefined>(resolve => {
    child.once('error', () => resolve(undefined))
    child.once('exit', code => setImmediate(() => resolve(code ?? undefined)))
  })
  clearTimeout(late)
  if (code !== 0) {
    channel.destroy()
    const reason = said.trim().split('\n').at(-1) || (code === undefined ? 'killed at the deadline' : `code ${code}`)
    throw new IsolationError('start_failed', `${binary} started no sandbox: ${reason}`)
  }
  return { channel, errors, pid: Number(await readFile(pidFile, 'utf8')) }
}

/** Its limits as they were read back, or none of it runs. */
async function confirmed(id: string, pid: number, cgroup: CgroupLimits, flavour: OciFlavour): Promise<CgroupCounters> {
  const found = await readBack(pid, id, cgroup)
  const wrong = typeof found === 'string' ? found : await flavour.confirm(pid)
  if (wrong === undefined && typeof found !== 'string') return found
  throw new IsolationError('limits_not_in_force', `Nothing was run under ${flavour.backend}: ${wrong}.`)
}

/** Takes away a file and all that is mounted on it: starts side by side may have mounted one on another. */
async function unmounted(path: string): Promise<void> {
  for (let tries = 0; tries < MOST_MOUNTS; tries++) {
    const { code } = await runTool('umount', ['--lazy', path], STOP_MS)
    if (code !== 0) break
  }
  await rm(path, { force: true }).catch(() => undefined)
}

const names = (folder: string) => readdir(folder).catch((): string[] => [])
