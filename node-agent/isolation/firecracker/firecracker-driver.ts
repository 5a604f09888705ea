import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, copyFile, readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import type { GuestImage } from '../../guest/image-manifest.ts'
import {
  type Driver,
  IsolationError,
  type Reaped,
  type Sandbox,
  type SandboxLimits,
  type SnapshotRef,
} from '../driver.ts'
import { findProgram } from '../find-program.ts'
import { guestChannel } from '../guest-channel.ts'
import { kvmRemark, kvmTrouble } from '../kvm.ts'
import { HOST_IDS } from '../oci/bundle.ts'
import { removeGroup, requireCgroups, TMP_MB } from '../oci/cgroups.ts'
import { isOrphan, newOwnedId } from '../owned-id.ts'
import { probeByRun } from '../probe-by-run.ts'
import { ramMbOf } from '../qemu/machine.ts'
import { runTool } from '../run-tool.ts'
import { sandboxFiles } from '../sandbox-files.ts'
import { connectVsock, sendRequest } from './api-client.ts'
import { inMemory, outOfMemory } from './in-memory.ts'
import {
  AGENT_PORT,
  bootRequests,
  type FirecrackerRequest,
  JAIL,
  jailerArgs,
  restoreRequests,
  snapshotRequests,
} from './requests.ts'
import { newSealKey, openFiles, sealFiles } from './sealed-files.ts'

export interface FirecrackerOptions {
  image: GuestImage
  stateDir: string
  /** FIRECRACKER_BIN; otherwise `firecracker` on PATH. */
  binary?: string
  jailer?: string
  /** Needs virtio-mmio, vsock and an initial file system built in, which the image's own kernel has not. */
  kernel?: string
  heartbeatMs?: number
}

const JAIL_ID = HOST_IDS - 2
const VMM_OVERHEAD_MB = 32

/** No machine was ever started by this driver where it was written: there was no binary, and no KVM that boots a guest. */
export function firecrackerDriver(options: FirecrackerOptions): Driver {
  const {
    image,
    stateDir,
    binary = 'firecracker',
    jailer = 'jailer',
    kernel = image.vmlinux,
    heartbeatMs = 5000,
  } = options
  const base = join(stateDir, 'firecracker')
  const jails = join(base, basename(binary))
  const snapshots = join(stateDir, 'firecracker-snapshots')
  const open = new Set<Sandbox>()
  /** Once, as another folder over it would hide the jails. */
  let baseMade: Promise<void> | undefined

  /** Each thing that is missing, as a sentence. Empty: worth trying. */
  async function missing(): Promise<string[]> {
    const trouble = await kvmTrouble()
    return [
      ...((await findProgram(binary))
        ? []
        : ['The firecracker binary was not found (looked in FIRECRACKER_BIN, PATH).']),
      ...((await findProgram(jailer))
        ? []
        : ['The jailer of firecracker was not found (looked in FIRECRACKER_JAILER, PATH).']),
      ...(trouble === undefined ? [] : [trouble]),
      ...(process.getuid?.() === 0 ? [] : ['The jailer needs root.']),
    ]
  }

  async function launch(
    limits: SandboxLimits,
    requests: FirecrackerRequest[],
    fill: (root: string) => Promise<string[]>,
    deadlineMs: number,
  ) {
    const lacking = await missing()
    if (lacking.length > 0)
      throw new IsolationError('isolation_unavailable', `Nothing was run under firecracker. ${lacking.join(' ')}`)
    const until = performance.now() + deadlineMs
    const id = newOwnedId('firecracker')
    const root = join(jails, id, 'root')
    baseMade ??= inMemory(base).catch((error: unknown) => {
      // The next start tries it again.
      baseMade = undefined
      throw error
    })
    await baseMade
    await makeFolder(root, 0o711)
    const files = await fill(root).catch(async (error: unknown) => {
      await remove(id)
      throw error
    })
    for (const file of files) await chown(join(root, file), JAIL_ID, JAIL_ID)
    const args = jailerArgs({
      id,
      firecracker: (await findProgram(binary))!,
      base,
      uid: JAIL_ID,
      // Twice: what it writes of itself stays in memory until it was sealed.
      memoryBytes: (2 * ramMbOf(limits, image) + VMM_OVERHEAD_MB) * 1024 * 1024,
      pids: 64,
      cgroupVersion: await requireCgroups(),
    })
    const child = spawn(jailer, args, { detached: true, stdio: 'ignore' })
    const gone = new Promise<void>(resolve => {
      child.once('exit', () => resolve())
      child.once('error', () => resolve())
    })
    try {
      for (const request of requests)
        await patiently(() => sendRequest(join(root, 'api.sock'), request, 2000), until, request === requests[0])
      const socket = await patiently(() => connectVsock(join(root, JAIL.vsock), AGENT_PORT, 1000), until, true)
      // It has read them, or holds them; what is no longer named is given back with its end.
      for (const file of files) await rm(join(root, file))
      return { id, root, child, gone, socket, left: until - performance.now() }
    } catch (error) {
      await remove(id, child)
      throw error
    }
  }

  /** The socket appears only once the process listens; the agent answers only once the kernel runs. */
  async function patiently<T>(attempt: () => Promise<T>, until: number, again: boolean): Promise<T> {
    for (;;) {
      try {
        return await attempt()
      } catch (error) {
        if (!again || performance.now() > until) throw error
        await wait(5)
      }
    }
  }

  async function remove(id: string, child?: ChildProcess): Promise<void> {
    child?.kill('SIGKILL')
    await removeGroup(id)
    await rm(join(jails, id), { recursive: true, force: true })
  }

  async function sandboxOf(
    limits: SandboxLimits,
    requests: FirecrackerRequest[],
    fill: (root: string) => Promise<string[]>,
    deadlineMs: number,
  ) {
    const { id, root, child, gone, socket, left } = await launch(limits, requests, fill, deadlineMs)
    const { promise: ended, resolve: end } = Promise.withResolvers<string>()
    const channel = guestChannel({
      input: socket,
      output: socket,
      heartbeatMs,
      kill: () => void removeGroup(id),
      ended: end,
    })
    const kernelRelease = await channel
      .hello(
        {
          now: new Date(),
          entropy: randomBytes(32),
          session: id,
          diskMb: limits.diskMb,
          tmpMb: TMP_MB,
          memoryMb: limits.memoryMb + limits.diskMb + TMP_MB,
          pids: limits.pids,
        },
        left,
      )
      .catch(async (error: unknown) => {
        await remove(id, child)
        throw error
      })
    const sandbox: Sandbox = {
      id,
      backend: 'firecracker',
      accel: 'kvm',
      kernelRelease,
      ended,
      exec: channel.exec,
      serve: channel.serve,
      ...sandboxFiles(channel.exec),
      async snapshot(): Promise<SnapshotRef> {
        if (channel.busy() > 0)
          throw new IsolationError('unsupported', 'A snapshot is taken between commands, not under one.')
        await channel.ping()
        const key = await keyOf(limits)
        // Named for this process: what it leaves behind is recognised as ownerless.
        const folder = join(snapshots, newOwnedId('firecracker'))
        await makeFolder(folder, 0o700)
        try {
          for (const request of snapshotRequests()) await sendRequest(join(root, 'api.sock'), request, 30_000)
          const sealKey = newSealKey()
          await sealFiles(sealKey, root, folder)
          return { backend: 'firecracker', key, folder, limits, sealKey }
        } catch (error) {
          await rm(folder, { recursive: true, force: true })
          throw error
        } finally {
          for (const file of [JAIL.state, JAIL.memory]) await rm(join(root, file), { force: true })
        }
      },
      async stop() {
        open.delete(sandbox)
        await channel.close('the sandbox was stopped')
        await remove(id, child)
        await gone
      },
    }
    open.add(sandbox)
    return sandbox
  }

  async function keyOf(limits: SandboxLimits): Promise<string> {
    const { stdout } = await runTool(binary, ['--version'], 5000)
    return `${stdout.split('\n')[0]}:${image.digest}:${ramMbOf(limits, image)}`
  }

  const driver: Driver = {
    backend: 'firecracker',
    async probe(deadlineMs) {
      const reasons = await missing()
      const remark = await kvmRemark()
      if (reasons.length > 0) {
        return {
          backend: 'firecracker',
          available: false,
          reasons: [...reasons, ...(remark === undefined ? [] : [remark])],
          install: [
            'Install firecracker and jailer of one release, set FIRECRACKER_BIN and FIRECRACKER_JAILER, on a machine with vmx or svm.',
          ],
        }
      }
      return probeByRun(driver, {
        binary,
        versionOf: text => /Firecracker v(\S+)/.exec(text)?.[1],
        deadlineMs,
        ownKernel: true,
        verifiedBy: 'booted the guest image in a jail, and ran a command in it',
        install: 'Set FIRECRACKER_KERNEL to a kernel with virtio-mmio, vsock and ACPI built in.',
      })
    },
    async prepare() {},
    start: (limits, deadlineMs) =>
      sandboxOf(
        limits,
        bootRequests(limits, image),
        async root => {
          await copyFile(kernel, join(root, JAIL.kernel))
          await copyFile(image.initramfs, join(root, JAIL.initrd))
          return [JAIL.kernel, JAIL.initrd]
        },
        deadlineMs,
      ),
    async restore(ref, deadlineMs) {
      if (ref.backend !== 'firecracker' || ref.key !== (await keyOf(ref.limits))) {
        throw new IsolationError('start_failed', 'The snapshot was taken with another firecracker, image or size.')
      }
      const { sealKey } = ref
      if (sealKey === undefined) throw new IsolationError('start_failed', 'The snapshot has no key.')
      return sandboxOf(ref.limits, restoreRequests(), root => openFiles(sealKey, ref.folder, root), deadlineMs)
    },
    async reap() {
      const reaped: Reaped[] = []
      for (const id of (await readdir(snapshots).catch((): string[] => [])).filter(id => isOrphan(id, 'firecracker')))
        await rm(join(snapshots, id), { recursive: true, force: true })
      for (const id of (await readdir(jails).catch((): string[] => [])).filter(id => isOrphan(id, 'firecracker'))) {
        await remove(id)
        reaped.push({ backend: 'firecracker', id })
      }
      return reaped
    },
    async close() {
      await Promise.all([...open].map(sandbox => sandbox.stop()))
      if (baseMade) await outOfMemory(base)
    },
  }
  return driver
}
