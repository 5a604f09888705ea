import { randomBytes } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import {
  type Driver,
  IsolationError,
  type PooledDriver,
  type Reaped,
  type Sandbox,
  type SandboxLimits,
  type SnapshotRef,
} from '../driver.ts'
import { qemuKvmTrouble } from '../kvm.ts'
import { listGroups, removeGroup } from '../oci/cgroups.ts'
import { isOrphan, newOwnedId } from '../owned-id.ts'
import { probeByRun } from '../probe-by-run.ts'
import { runTool } from '../run-tool.ts'
import { sandboxFiles } from '../sandbox-files.ts'
import { standbyPool } from '../standby-pool.ts'
import { withDeadline } from '../with-deadline.ts'
import { ramMbOf, stateKey } from './machine.ts'
import { machineClones } from './machine-clones.ts'
import { type Machine, type QemuOptions, qemuMachines } from './qemu-machines.ts'
import { ramFolder } from './qemu-process.ts'
import { saveState } from './saved-state.ts'

const FILE_MS = 20_000

export function qemuDriver(options: QemuOptions): PooledDriver {
  const { image, accel, binary = 'qemu-system-x86_64', slowness = 1 } = options
  const snapshots = join(options.stateDir, 'qemu', 'snapshots')
  const machines = qemuMachines(options)
  const clones = machineClones(machines, options)
  const { waiting: make, keyOf: kindOf } = clones
  const pool = standbyPool({ places: options.poolSize ?? 2, keyOf: kindOf, make, drop: machines.drop })
  let version: Promise<string> | undefined

  async function keyOf(limits: SandboxLimits): Promise<string> {
    version ??= runTool(binary, ['--version'], 5000).then(({ stdout }) => stdout.split('\n')[0] ?? '')
    return stateKey(await version, { accel, image, ramMb: ramMbOf(limits, image) })
  }

  async function wake(machine: Machine, limits: SandboxLimits, deadlineMs: number): Promise<Sandbox> {
    const { channel, ended } = machine
    const kernelRelease = await machines.greet(machine, limits, deadlineMs).catch(async (error: unknown) => {
      await channel.close('it did not start')
      await machines.drop(machine)
      throw error
    })
    let stopping: Promise<void> | undefined
    return {
      id: machine.id,
      backend: 'qemu',
      accel,
      kernelRelease,
      ended,
      exec: channel.exec,
      serve: channel.serve,
      ...sandboxFiles(channel.exec, FILE_MS * slowness),
      async snapshot() {
        if (channel.busy() > 0)
          throw new IsolationError('unsupported', 'A snapshot is taken between commands, not under one.')
        return save(machine, { key: await keyOf(limits), limits, snapshots, deadlineMs: machines.bootMs })
      },
      stop() {
        stopping ??= (async () => {
          await channel.close('the sandbox was stopped')
          await machines.drop(machine)
        })()
        return stopping
      },
    }
  }

  const driver: PooledDriver = {
    backend: 'qemu',
    probe: deadlineMs => probe(driver, options, deadlineMs),
    prepare: pool.prepare,

    async start(limits, deadlineMs) {
      const until = performance.now() + deadlineMs
      const waiting = pool.take(limits)
      const late = `no machine within ${Math.round(deadlineMs)} ms`
      const coming = waiting ?? clones.clone(limits)
      const machine = await withDeadline(coming, deadlineMs, late).catch((error: unknown) => {
        void coming.then(machines.drop, () => undefined)
        throw error
      })
      const sandbox = await wake(machine, limits, until - performance.now())
      void pool.refill().catch(() => undefined)
      return { ...sandbox, pooled: waiting !== undefined }
    },

    async restore(ref, deadlineMs) {
      const until = performance.now() + deadlineMs
      if (ref.backend !== 'qemu' || ref.key !== (await keyOf(ref.limits))) {
        throw new IsolationError(
          'start_failed',
          'The snapshot was taken with another QEMU, accelerator, image or size.',
        )
      }
      if (ref.sealKey === undefined) throw new IsolationError('start_failed', 'The snapshot has no key.')
      const state = { path: join(ref.folder, 'state'), key: ref.sealKey }
      const coming = machines.bringBack(ref.limits, { ram: { kind: 'empty' }, state })
      const machine = await withDeadline(coming, deadlineMs, `no machine within ${Math.round(deadlineMs)} ms`)
      return wake(machine, ref.limits, until - performance.now())
    },

    reap: () => reap(snapshots),

    async close() {
      // One that still boots would otherwise take its whole deadline.
      machines.killAll()
      await Promise.all([pool.close(), clones.settled()])
      await machines.dropAll()
    },
  }
  return driver
}

/** Everything, memory too, in one sealed file; the machine pauses meanwhile. */
async function save(
  { qemu, folder: place, channel }: Machine,
  { key, limits, snapshots, deadlineMs }: { key: string; limits: SandboxLimits; snapshots: string; deadlineMs: number },
): Promise<SnapshotRef> {
  // Named for this process: what it leaves behind is recognised as ownerless.
  const folder = join(snapshots, newOwnedId('qemu'))
  const sealKey = randomBytes(32)
  await makeFolder(folder, 0o700)
  try {
    await channel.ping()
    await qemu.qmp.run('stop')
    try {
      await saveState(qemu.qmp, place, { path: join(folder, 'state'), key: sealKey }, deadlineMs)
    } finally {
      await qemu.qmp.run('cont')
    }
    return { backend: 'qemu', key, folder, limits, sealKey }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

async function probe(driver: Driver, { accel, binary = 'qemu-system-x86_64' }: QemuOptions, deadlineMs: number) {
  const trouble = accel === 'kvm' ? await qemuKvmTrouble() : undefined
  if (trouble !== undefined) {
    const refused = { available: false, reasons: [trouble.reason], install: [trouble.install] }
    return { backend: 'qemu' as const, accel, ...refused }
  }
  const found = await probeByRun(driver, {
    binary,
    versionOf: text => /version (\S+)/.exec(text)?.[1],
    deadlineMs,
    ownKernel: true,
    verifiedBy: `booted the guest image with the accelerator ${accel}, and ran a command in it`,
    install: 'Install qemu-system-x86 (Debian: apt-get install qemu-system-x86).',
  })
  return { ...found, accel }
}

/** What processes that are gone have left behind. */
async function reap(snapshots: string): Promise<Reaped[]> {
  const place = await ramFolder()
  const found = [...(await listGroups()), ...(await readdir(place).catch(() => []))]
  const orphans = [...new Set(found)].filter(id => isOrphan(id, 'qemu'))
  for (const id of (await readdir(snapshots).catch(() => [])).filter(id => isOrphan(id, 'qemu'))) {
    await rm(join(snapshots, id), { recursive: true, force: true })
  }
  const reaped: Reaped[] = []
  for (const id of orphans) {
    await killNamed(id)
    await removeGroup(id)
    await rm(join(place, id), { recursive: true, force: true })
    reaped.push({ backend: 'qemu', id })
  }
  return reaped
}

/** Ends machines of this name: those outside our process groups, as when the node is not root. */
async function killNamed(id: string): Promise<void> {
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
    const name = words.indexOf('-name')
    if (name === -1 || words[name + 1] !== id) continue
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It ended meanwhile.
    }
  }
}
