import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import { requireBackend } from '../../../tests/backends/require.ts'
import type { PooledDriver, Sandbox } from '../driver.ts'
import { cgroupVersion, groupMembers, listGroups } from '../oci/cgroups.ts'
import { isOrphan } from '../owned-id.ts'
import { FAKE_DATA_MB } from '../testing/fake-firecracker.ts'
import { shell } from '../testing/run-command.ts'
import { firecrackerDriver } from './firecracker-driver.ts'

const LIMITS = { memoryMb: 64, cpus: 0.5, pids: 16, diskMb: 16 }
const START_MS = 30_000
const FAKE = new URL('../testing/fake-jailer.ts', import.meta.url).pathname
const isLimited = process.getuid?.() === 0 && (await cgroupVersion()) !== undefined
const here = requireBackend('control groups', isLimited, 'run as root on Linux with control groups mounted')

let folder: string
let drivers: PooledDriver[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-jail-'))
  drivers = []
  await writeFile(join(folder, 'image'), 'no kernel')
  const firecracker = '#!/bin/sh\necho "Firecracker v1.12.1"\n'
  await writeFile(join(folder, 'firecracker'), firecracker, { mode: 0o755 })
})
afterEach(async () => {
  for (const driver of drivers) await driver.close()
  expect(mountsIn(folder)).toEqual([])
  expect((await listGroups()).filter(id => id.startsWith(`wb-firecracker-${process.pid}-`))).toEqual([])
  await rm(folder, { recursive: true, force: true })
})

const mountsIn = (path: string) =>
  readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map(line => line.split(' ')[1] ?? '')
    .filter(at => at.startsWith(path))

async function driverOf({
  behaviour = 'plain',
  stateDir = join(folder, 'state'),
  binary = 'firecracker',
  poolSize = 0,
} = {}) {
  const jailer = join(folder, `jailer-${behaviour}`)
  await writeFile(jailer, `#!/bin/sh\nexec "${process.execPath}" "${FAKE}" ${behaviour} "$@"\n`, { mode: 0o755 })
  const image = join(folder, 'image')
  const driver = firecrackerDriver({
    image: { rootfs: '/none', vmlinux: image, initramfs: image, digest: 'd', programs: [], rootMb: 0 },
    stateDir,
    binary: join(folder, binary),
    jailer,
    device: '/dev/null',
    poolSize,
  })
  drivers.push(driver)
  return driver
}

/** The template of a machine has run one command. */
const said = async (sandbox: Sandbox) => (await shell(sandbox, 'x')).stdout
const jailsIn = (stateDir: string) => readdir(join(stateDir, 'firecracker'), { recursive: true }).catch(() => [])

describe.runIf(here)('a machine in a jail, with a stand-in for the jailer', () => {
  it('starts whatever the length of its path, and whatever its program is called', async () => {
    const long = join(folder, 'a-folder-that-an-operator-chose'.repeat(4))
    const name = 'firecracker-v1.16.1-x86_64'
    await makeFolder(join(folder, 'release'))
    await copyFile(join(folder, 'firecracker'), join(folder, 'release', name))
    await symlink(join(folder, 'release', name), join(folder, 'link'))
    const driver = await driverOf({ stateDir: long, binary: 'link' })
    const sandbox = await driver.start(LIMITS, START_MS)
    expect(await said(sandbox)).toBe('command 2\n')
    expect((await jailsIn(long)).some(path => path.includes(`${name}/${sandbox.id}`))).toBe(true)
    await sandbox.stop()
    expect((await jailsIn(long)).join()).not.toContain(sandbox.id)
  })

  it('has memory, processes, processor time and swap limited before it begins, and read back', async () => {
    const driver = await driverOf()
    const sandbox = await driver.start(LIMITS, START_MS)
    const [pid] = await groupMembers(sandbox.id)
    const lines = (await readFile(`/proc/${pid}/cgroup`, 'utf8')).split('\n')
    const controllers = (await cgroupVersion()) === 2 ? [''] : ['memory', 'pids', 'cpu']
    for (const name of controllers) {
      expect(lines.find(line => line.split(':')[1] === name)).toMatch(`/waybill/${sandbox.id}`)
    }
    const limit = (await cgroupVersion()) === 2 ? 'cpu.max' : 'cpu/cpu.cfs_quota_us'
    const at = limit.includes('/') ? limit.replace('/', `/waybill/${sandbox.id}/`) : `waybill/${sandbox.id}/${limit}`
    expect(await readFile(`/sys/fs/cgroup/${at}`, 'utf8')).toMatch(/^50000\b/)
    await sandbox.stop()
  })

  it('gets nothing of the environment of the service', async () => {
    process.env.WAYBILL_TEST_SECRET = 'of the service'
    const sandbox = await (await driverOf()).start(LIMITS, START_MS)
    delete process.env.WAYBILL_TEST_SECRET
    for (const pid of await groupMembers(sandbox.id)) {
      expect(await readFile(`/proc/${pid}/environ`, 'latin1')).not.toContain('of the service')
    }
    await sandbox.stop()
  })

  it('goes on after a snapshot, from which another begins where it was', async () => {
    const driver = await driverOf()
    const first = await driver.start(LIMITS, START_MS)
    expect(await said(first)).toBe('command 2\n')
    const ref = await first.snapshot()
    expect(await said(first)).toBe('command 3\n')
    const other = await driver.restore(ref, START_MS)
    expect(await said(other)).toBe('command 3\n')
    expect(await said(first)).toBe('command 4\n')
    await Promise.all([first.stop(), other.stop()])
  })

  it('takes commands that come while it is written down, after that', async () => {
    const sandbox = await (await driverOf()).start(LIMITS, START_MS)
    const taken = sandbox.snapshot()
    expect([await said(sandbox), await said(sandbox)]).toEqual(['command 2\n', 'command 3\n'])
    const { folder: written } = await taken
    expect(existsSync(written)).toBe(true)
    const command = sandbox.exec({ argv: ['x'], deadlineMs: 5000, outputBytes: 100 })
    const [, exit] = await Promise.all([sandbox.snapshot().catch(() => undefined), command.then(exec => exec.exit)])
    expect(exit).toEqual({ kind: 'code', code: 0 })
    await sandbox.stop()
  })

  it('of a version whose vsock is reset late is connected to again', async () => {
    const driver = await driverOf({ behaviour: 'late-reset' })
    const first = await driver.start(LIMITS, START_MS)
    const ref = await first.snapshot()
    expect(await said(first)).toBe('command 2\n')
    const other = await driver.restore(ref, START_MS)
    expect(await said(other)).toBe('command 2\n')
    await Promise.all([first.stop(), other.stop()])
  })

  it('pays itself for the memory that it was brought back with, and for no page that holds nothing', async () => {
    const driver = await driverOf()
    const first = await driver.start(LIMITS, START_MS)
    const ref = await first.snapshot()
    const other = await driver.restore(ref, START_MS)
    const group = (await cgroupVersion()) === 2 ? `waybill/${other.id}` : `memory/waybill/${other.id}`
    const counted = await readFile(`/sys/fs/cgroup/${group}/memory.stat`, 'utf8')
    const sharedMb = Number(/^shmem (\d+)$/m.exec(counted)?.[1]) / 2 ** 20
    expect(sharedMb).toBeGreaterThanOrEqual(FAKE_DATA_MB)
    expect(sharedMb).toBeLessThan(FAKE_DATA_MB + 2)
    expect((await stat(join(ref.folder, 'memory'))).size).toBeLessThan((FAKE_DATA_MB + 1) * 2 ** 20)
    await Promise.all([first.stop(), other.stop()])
  })

  it('waits paused where a pool was asked for, is at hand at once, and another takes its place', async () => {
    const driver = await driverOf({ poolSize: 1 })
    await driver.prepare(LIMITS)
    const began = performance.now()
    const [one, two] = [await driver.start(LIMITS, START_MS), await driver.start(LIMITS, START_MS)]
    expect([one.pooled, two.pooled]).toEqual([true, true])
    // One in the template, one while it waited.
    expect([await said(one), await said(two)]).toEqual(['command 3\n', 'command 3\n'])
    expect(performance.now() - began).toBeLessThan(20_000)
    expect(one.id).not.toBe(two.id)
    await Promise.all([one.stop(), two.stop()])
  })

  it('that died while it waited is replaced by a new one', async () => {
    const driver = await driverOf({ poolSize: 1 })
    await driver.prepare(LIMITS)
    const [waiting] = (await listGroups()).filter(id => id.startsWith(`wb-firecracker-${process.pid}-`))
    for (const pid of await groupMembers(waiting!)) process.kill(pid, 'SIGKILL')
    await expect.poll(() => groupMembers(waiting!)).toEqual([])
    const sandbox = await driver.start(LIMITS, START_MS)
    expect(await said(sandbox)).toBe('command 2\n')
    await sandbox.stop()
  })

  it('begins from files of a template that no machine can change', async () => {
    const driver = await driverOf()
    const [one, other] = [await driver.start(LIMITS, START_MS), await driver.start({ ...LIMITS, pids: 8 }, START_MS)]
    const [mount] = mountsIn(join(folder, 'state'))
    const templates = join(mount!, 'templates')
    const [size, ...others] = await readdir(templates)
    // Another number of processes is no other template.
    expect(others).toEqual([])
    for (const name of ['state', 'memory']) {
      const { mode, uid, nlink, blocks, size: bytes } = await stat(join(templates, size!, name))
      expect([mode & 0o777, uid, nlink]).toEqual([0o444, 0, 1])
      if (name === 'memory') expect(blocks * 512).toBeLessThan(bytes / 2)
    }
    expect((await stat(join(templates, size!))).mode & 0o777).toBe(0o700)
    await Promise.all([one.stop(), other.stop()])
  })

  it('gives back what it added to the files of its template', async () => {
    const driver = await driverOf()
    const [one, other] = [await driver.start(LIMITS, START_MS), await driver.start(LIMITS, START_MS)]
    const templates = join(mountsIn(join(folder, 'state'))[0]!, 'templates')
    const memory = join(templates, (await readdir(templates))[0]!, 'memory')
    const heldMb = async () => ((await stat(memory)).blocks * 512) / 2 ** 20
    const before = await heldMb()
    const content = await readFile(memory)
    // As the kernel does for a machine that writes where the file has nothing.
    await writeFile(memory, content)
    expect(await heldMb()).toBeGreaterThan(before + 64)
    await one.stop()
    await expect.poll(heldMb, { timeout: 10_000 }).toBeLessThan(before + 1)
    expect((await readFile(memory)).equals(content)).toBe(true)
    expect(await said(other)).toBe('command 2\n')
    await other.stop()
  })

  it('is not followed out of its jail by a link in place of its socket', async () => {
    const sandbox = await (await driverOf()).start(LIMITS, START_MS)
    const [mount] = mountsIn(join(folder, 'state'))
    const vsock = join(mount!, 'firecracker', sandbox.id, 'root/agent.vsock')
    let reached = 0
    const other = createServer(() => reached++)
    await new Promise<void>(resolve => other.listen(join(folder, 'of-the-host'), resolve))
    await rm(vsock)
    await symlink(join(folder, 'of-the-host'), vsock)
    await expect(sandbox.snapshot()).rejects.toThrow('is no socket')
    expect(reached).toBe(0)
    expect(await sandbox.ended).toContain('lost')
    await sandbox.stop()
    other.close()
  })

  it.each([
    ['fails', 'Firecracker started no machine: Error: Invalid gid'],
    ['panics', 'Firecracker started no machine: Kernel panic - not syncing: no init'],
  ])('that %s is given up at once, with its last words', async (behaviour, message) => {
    const driver = await driverOf({ behaviour })
    const began = performance.now()
    await expect(driver.start(LIMITS, 60_000)).rejects.toMatchObject({ code: 'start_failed', message })
    expect(performance.now() - began).toBeLessThan(20_000)
    expect((await jailsIn(join(folder, 'state'))).join()).not.toContain('root')
  })

  it('that is larger than Firecracker makes them is refused before anything runs', async () => {
    const wide = (await driverOf()).start({ ...LIMITS, cpus: 33 }, START_MS)
    await expect(wide).rejects.toMatchObject({ code: 'start_failed', message: expect.stringContaining('vcpu_count') })
  })

  it('that ends by itself is lost at once, and gives back its jail', async () => {
    const sandbox = await (await driverOf()).start(LIMITS, START_MS)
    for (const pid of await groupMembers(sandbox.id)) process.kill(pid, 'SIGKILL')
    expect(await sandbox.ended).toContain('closed its channel')
    await expect.poll(async () => (await jailsIn(join(folder, 'state'))).join()).not.toContain(sandbox.id)
    await expect(said(sandbox)).rejects.toMatchObject({ code: 'exec_failed' })
    await sandbox.stop()
  })

  it('keeps its jail in memory while another driver of the same folder comes and goes', async () => {
    const [one, doctor] = [await driverOf(), await driverOf()]
    const sandbox = await one.start(LIMITS, START_MS)
    const probed = await doctor.start(LIMITS, START_MS)
    // Neither has a jail in the mount of the other.
    expect(mountsIn(join(folder, 'state'))).toHaveLength(2)
    await probed.stop()
    await doctor.reap()
    await doctor.close()
    expect(mountsIn(join(folder, 'state'))).toHaveLength(1)
    const ref = await sandbox.snapshot()
    const other = await one.restore(ref, START_MS)
    expect(mountsIn(join(folder, 'state'))).toHaveLength(1)
    await Promise.all([sandbox.stop(), other.stop()])
  })

  it('of a node that is gone is reaped with its folder in memory', async () => {
    // Process 1 is there, but started at another time: the owner of this name is dead.
    const gone = 'wb-firecracker-1-999999999999-0123456789ab'
    const base = join(folder, 'state/firecracker', gone)
    const id = 'wb-firecracker-1-999999999999-ba9876543210'
    await makeFolder(base)
    spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', base])
    await makeFolder(join(base, 'firecracker', id, 'root'))
    expect([isOrphan(gone, 'firecracker'), mountsIn(folder)]).toEqual([true, [base]])
    expect(await (await driverOf()).reap()).toEqual([{ backend: 'firecracker', id }])
    expect([existsSync(base), mountsIn(folder)]).toEqual([false, []])
  })

  it('is ended with the driver, also while it starts', async () => {
    const driver = await driverOf()
    const starting = driver.start(LIMITS, START_MS)
    const refused = expect(starting).rejects.toMatchObject({ code: 'start_failed' })
    await expect.poll(() => mountsIn(join(folder, 'state')).length).toBe(1)
    await driver.close()
    await refused
    expect(await jailsIn(join(folder, 'state'))).toEqual([])
  })
})
