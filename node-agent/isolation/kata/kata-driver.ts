import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { release } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import type { GuestImage } from '../../guest/image-manifest.ts'
import { type Driver, IsolationError, type Probe, type Reaped, type Sandbox, type SandboxLimits } from '../driver.ts'
import { findProgram } from '../find-program.ts'
import { guestChannel } from '../guest-channel.ts'
import { bundleOf } from '../oci/bundle.ts'
import {
  type CgroupLimits,
  CPU_PERIOD,
  createGroup,
  killGroupMembers,
  listGroups,
  memoryBytesOf,
  readBack,
  removeGroup,
  TMP_MB,
} from '../oci/cgroups.ts'
import { isOrphan, newOwnedId } from '../owned-id.ts'
import { probeByRun } from '../probe-by-run.ts'
import { killGroup, runTool } from '../run-tool.ts'
import { sandboxFiles } from '../sandbox-files.ts'
import { type Attached, type Containerd, containerd } from './containerd.ts'

export interface KataOptions {
  image: GuestImage
  /** For bundles. */
  stateDir: string
  /** A folder that is seen read-only as /opt. */
  tools?: string
  /** Of containerd. */
  socket?: string
  path?: string
  heartbeatMs?: number
  /** False where a shim stands in for Kata's whose containers share the host's kernel: for tests of what containerd does. */
  ownKernel?: boolean
}

/** Kata's own agent and kernel, and its programs on the host, inside the group of the sandbox. */
const OVERHEAD_MB = 256
const OVERHEAD_TASKS = 256

const AGENT_MB = 4

/** How long a client whose output has ended has to say why. */
const LAST_WORDS_MS = 1000

/**
 * A container in a virtual machine of Kata Containers, by containerd: since its second version Kata has no command line of a
 * runtime. The limits hold twice. Kata's agent sets them for the container inside; a control group on the host, below which Kata
 * puts its hypervisor (`sandbox_cgroup_only`), sets them for the whole machine.
 */
export function kataDriver(options: KataOptions): Driver {
  const { image, stateDir, socket = '/run/containerd/containerd.sock', path, ownKernel = true } = options
  const bundles = join(stateDir, 'kata')
  const open = new Set<Sandbox>()

  async function missing(): Promise<string[]> {
    const lacking: string[] = []
    if (image.digest === '') lacking.push('There is no guest image: build it with "node-agent image".')
    if ((await findProgram('ctr', path)) === undefined) lacking.push('The containerd client "ctr" was not found.')
    if (!existsSync(socket)) lacking.push(`containerd does not listen on ${socket}.`)
    if ((await findProgram('containerd-shim-kata-v2', path)) === undefined) {
      lacking.push('The shim "containerd-shim-kata-v2" was not found on PATH.')
    }
    return lacking
  }

  const client = async () => containerd((await findProgram('ctr', path)) ?? 'ctr', socket)

  async function remove(id: string): Promise<void> {
    await (await client()).remove(id)
    await killGroupMembers(id)
    await removeGroup(id)
    await rm(join(bundles, id), { recursive: true, force: true })
  }

  const driver: Driver = {
    backend: 'kata',

    async probe(deadlineMs): Promise<Probe> {
      const reasons = await missing()
      const install = [
        'Install containerd and Kata Containers 3, with sandbox_cgroup_only = true in its configuration.',
      ]
      if (reasons.length > 0) return { backend: 'kata', available: false, reasons, install }
      const until = performance.now() + deadlineMs
      const found = await probeByRun(driver, {
        binary: (await findProgram('ctr', path))!,
        versionOf: text => /containerd\S* v?(\d\S*)/.exec(text)?.[1],
        deadlineMs,
        ownKernel,
        verifiedBy: "ran a command: its kernel is not the host's, and its limits were read back on both sides",
        install: install[0]!,
      })
      if (found.available) return found
      const why = await failedCheck(path, until - performance.now())
      return why === undefined ? found : { ...found, reasons: [...found.reasons, why] }
    },

    async start(limits, deadlineMs) {
      const until = performance.now() + deadlineMs
      const lacking = await missing()
      if (lacking.length > 0) {
        throw new IsolationError('isolation_unavailable', `Nothing was run under kata. ${lacking.join(' ')}`)
      }
      const id = newOwnedId('kata')
      const place = { id, bundle: join(bundles, id), limits, client: await client() }
      try {
        const sandbox = await started(place, options, until, () => {
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
      throw new IsolationError('unsupported', 'A kata sandbox cannot be restored.')
    },

    async reap() {
      const inBundles = await readdir(bundles).catch((): string[] => [])
      const held = existsSync(socket) ? await (await client()).list() : []
      const orphans = [...new Set([...held, ...inBundles, ...(await listGroups())])].filter(id => isOrphan(id, 'kata'))
      const reaped: Reaped[] = []
      for (const id of orphans) {
        await remove(id)
        reaped.push({ backend: 'kata', id })
      }
      return reaped
    },

    async close() {
      await Promise.all([...open].map(sandbox => sandbox.stop()))
    },
  }
  return driver
}

interface StartOptions {
  id: string
  bundle: string
  limits: SandboxLimits
  client: Containerd
}

/** A container whose agent has answered and whose limits were read back. */
async function started(
  { id, bundle, limits, client }: StartOptions,
  { image, tools, heartbeatMs = 5000, ownKernel = true }: KataOptions,
  until: number,
  remove: () => Promise<void>,
): Promise<Sandbox> {
  const inside: CgroupLimits = {
    memoryBytes: memoryBytesOf(limits, AGENT_MB),
    // The agent is one of them.
    pids: limits.pids + 1,
    cpuQuota: Math.round(limits.cpus * CPU_PERIOD),
  }
  const whole: CgroupLimits = {
    memoryBytes: inside.memoryBytes + OVERHEAD_MB * 2 ** 20,
    pids: inside.pids + OVERHEAD_TASKS,
    cpuQuota: inside.cpuQuota,
  }
  await createGroup(id, whole)
  await makeFolder(bundle, 0o711)
  const config = join(bundle, 'config.json')
  const spec = bundleOf({
    rootfs: image.rootfs,
    limits,
    group: `${id}/sandbox`,
    cgroup: inside,
    seccomp: false,
    rootAgent: false,
    counters: true,
    ...(tools !== undefined && { tools }),
  })
  await writeFile(config, JSON.stringify(spec))
  const child = client.run(id, config)
  const refusal = refusalOf(child)
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  const channel = guestChannel({
    input: child.stdin,
    output: child.stdout,
    heartbeatMs,
    kill: () => void killGroupMembers(id),
    ended: end,
  })
  const hello = channel.hello(
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
  const kernelRelease = await hello.catch(async (error: unknown) => {
    const reason = await Promise.race([refusal, wait(LAST_WORDS_MS)])
    killGroup(child.pid)
    throw reason ?? error
  })
  const wrong =
    ownKernel && kernelRelease === release()
      ? "its kernel is the host's, so it is in no machine: look at what containerd runs as io.containerd.kata.v2"
      : await faultOf(id, client, inside, whole)
  if (wrong !== undefined) {
    await channel.close('its limits are not in force')
    killGroup(child.pid)
    throw new IsolationError('limits_not_in_force', `Nothing was run under kata: ${wrong}.`)
  }
  let stopping: Promise<void> | undefined
  return {
    id,
    backend: 'kata',
    kernelRelease,
    ended,
    exec: channel.exec,
    serve: channel.serve,
    ...sandboxFiles(channel.exec),
    async snapshot() {
      throw new IsolationError('unsupported', 'A kata sandbox cannot be snapshotted.')
    },
    stop() {
      stopping ??= (async () => {
        await channel.close('the sandbox was stopped')
        killGroup(child.pid)
        await remove()
      })()
      return stopping
    },
  }
}

/** What the client said, once it has ended. */
function refusalOf(child: Attached): Promise<IsolationError> {
  let said = ''
  child.stderr.on('data', chunk => {
    if (said.length < 4096) said += chunk
  })
  return new Promise(resolve => {
    const settle = (why: string) =>
      resolve(new IsolationError('start_failed', `containerd started no sandbox: ${lastLine(said) || why}`))
    child.once('error', error => settle(error.message))
    child.once('exit', code => setImmediate(() => settle(code === null ? 'its client was killed' : `code ${code}`)))
  })
}

/** What is wrong with its limits: on the host, where every thread of the hypervisor must be below the group, and inside. */
async function faultOf(
  id: string,
  client: Containerd,
  inside: CgroupLimits,
  whole: CgroupLimits,
): Promise<string | undefined> {
  const pid = await client.pidOf(id)
  const tasks = await readdir(`/proc/${pid}/task`).catch((): string[] => [])
  if (tasks.length === 0) return 'containerd names no process of it that lives'
  for (const task of tasks) {
    const found = await readBack(Number(task), id, whole, true)
    if (typeof found === 'string') return `${found} (set sandbox_cgroup_only = true in Kata's configuration)`
  }
  const held = await client.limitsOf(id)
  if (held === undefined) return 'containerd says nothing of the limits inside'
  // The kernel rounds to whole pages.
  if (Math.abs(held.memoryBytes - inside.memoryBytes) > 65_536) {
    return `memory inside is limited to ${held.memoryBytes}, not to ${inside.memoryBytes}`
  }
  return held.pids === inside.pids ? undefined : `processes inside are limited to ${held.pids}, not to ${inside.pids}`
}

/** What Kata's own check of this machine finds amiss, where that program is installed. */
async function failedCheck(path: string | undefined, deadlineMs: number): Promise<string | undefined> {
  const program = await findProgram('kata-runtime', path)
  if (program === undefined) return undefined
  const { code, stderr, stdout, timedOut } = await runTool(program, ['check'], Math.max(1, deadlineMs))
  if (code === 0) return undefined
  const end = timedOut ? 'it did not end in time' : `it ended with code ${code}`
  return `"kata-runtime check" failed: ${lastLine(stderr) || lastLine(stdout) || end}`
}

const lastLine = (text: string) => text.trim().split('\n').at(-1) ?? ''
