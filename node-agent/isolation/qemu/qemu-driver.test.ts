import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireBackend } from '../../../tests/backends/require.ts'
import { MODULES } from '../../guest/image-inputs.ts'
import type { PooledDriver, SandboxLimits } from '../driver.ts'
import { escapeProbes } from '../testing/escape-probes.ts'
import { shell } from '../testing/run-command.ts'
import { hasGuestInputs, testImage } from '../testing/test-image.ts'
import { qemuDriver } from './qemu-driver.ts'
import { ramFolder } from './qemu-process.ts'

const LIMITS: SandboxLimits = { memoryMb: 48, cpus: 1, pids: 24, diskMb: 16 }
const QEMU = 'qemu-system-x86_64'
const hasQemu = spawnSync(QEMU, ['--version']).status === 0
const here = requireBackend('qemu', hasQemu, 'apt-get install qemu-system-x86') && hasGuestInputs()

/** Processes of the host that run the machine of this name. */
const pidsOf = (id: string) =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`-name\0${id}\0`)
      } catch {
        return false
      }
    })

/** What the files of this process's machines take of the host's memory. */
async function heldMb(): Promise<number> {
  const folder = await ramFolder()
  const own = readdirSync(folder).filter(name => name.startsWith(`wb-qemu-${process.pid}-`))
  const files = own.map(name => join(folder, name, 'ram')).filter(path => existsSync(path))
  return files.reduce((sum, path) => sum + (statSync(path).blocks * 512) / 2 ** 20, 0)
}

describe.runIf(here)('a virtual machine under software emulation', () => {
  let stateDir: string
  let driver: PooledDriver
  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'waybill-qemu-'))
    driver = qemuDriver({ image: await testImage(), accel: 'tcg', stateDir, poolSize: 1 })
    await driver.prepare(LIMITS)
  })
  afterAll(async () => {
    await driver?.close()
    await rm(stateDir, { recursive: true, force: true })
  })

  describe('against foreign code', () => {
    escapeProbes({
      driver: () => driver,
      limits: LIMITS,
      ownKernel: true,
      survives: { memory: true, pids: true },
      startMs: 20_000,
    })
  })

  it('is found to work by booting it, and is marked as emulated', async () => {
    const probe = await driver.probe(30_000)
    expect(probe).toMatchObject({ available: true, accel: 'tcg', verifiedBy: expect.stringContaining('booted') })
    const sandbox = await driver.start(LIMITS, 20_000)
    expect(sandbox.accel).toBe('tcg')
    await sandbox.stop()
  }, 40_000)

  it('gives each clone its own files, randomness, name and the time of now', async () => {
    const [one, two] = await Promise.all([driver.start(LIMITS, 20_000), driver.start(LIMITS, 20_000)])
    await one!.writeFile('mine', new Uint8Array(3))
    expect(await two!.listFiles('.')).toEqual([])
    const line =
      'head -c 16 /dev/urandom | hexdump -v -e \'1/1 "%02x"\'; echo; cat /proc/sys/kernel/random/boot_id; date +%s'
    const [a, b] = await Promise.all([one!, two!].map(async sandbox => (await shell(sandbox, line)).stdout.split('\n')))
    expect([a![0], b![0]]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.stringMatching(/^[0-9a-f]{32}$/)])
    expect(a![0]).not.toBe(b![0])
    expect(a![1]).not.toBe(b![1])
    for (const clock of [a![2], b![2]]) expect(Math.abs(Number(clock) - Date.now() / 1000)).toBeLessThan(5)
    expect(one!.id).not.toBe(two!.id)
    await Promise.all([one!.stop(), two!.stop()])
  }, 40_000)

  it('has the modules of every backend, in an order that its kernel takes', async () => {
    const sandbox = await driver.start(LIMITS, 20_000)
    const { stdout } = await shell(sandbox, 'cut -d" " -f1 /proc/modules')
    expect(stdout.trim().split('\n').toSorted()).toEqual(MODULES.toSorted())
    await sandbox.stop()
  })

  it('has a workspace and processes of the size that was asked for, whatever the template had', async () => {
    const wide = { ...LIMITS, pids: 40 }
    const sandbox = await driver.start(wide, 20_000)
    const { stdout } = await shell(sandbox, 'df -m /work | tail -1; cat /sys/fs/cgroup/commands/pids.max')
    expect(stdout).toMatch(/^tmpfs\s+16\s/)
    expect(stdout).toMatch(/\n40\n$/)
    await sandbox.stop()
  })

  it('lends half of its memory to what processes share, and says so when that is full', async () => {
    const sandbox = await driver.start(LIMITS, 20_000)
    const { exit, stdout } = await shell(sandbox, 'dd if=/dev/zero of=/dev/shm/all bs=1M; du -m /dev/shm/all; exit 1')
    expect(Number.parseInt(stdout, 10)).toBe(LIMITS.memoryMb / 2)
    expect(exit).toMatchObject({ kind: 'limit', limit: 'disk' })
    await sandbox.stop()
  })

  it('lives on when a command fills the memory that it may take', async () => {
    const limits = { ...LIMITS, memoryMb: 640 }
    const [sandbox, other] = await Promise.all([driver.start(limits, 20_000), driver.start(limits, 20_000)])
    const kept = crypto.getRandomValues(new Uint8Array(50_000))
    await other!.writeFile('kept', kept)
    const line = 'dd if=/dev/zero of=/dev/null bs=580M count=1 && echo whole'
    // Every page of it is touched first under emulation, on a core that others use as well.
    const ran = await shell(sandbox!, line, { deadlineMs: 60_000 })
    expect(ran).toMatchObject({ exit: { kind: 'code', code: 0 }, stdout: 'whole\n' })
    expect(await shell(sandbox!, 'echo alive')).toMatchObject({ stdout: 'alive\n' })
    expect(await heldMb()).toBeGreaterThan(500)
    await sandbox!.stop()
    // Of the template, too, what no machine holds any more.
    await expect.poll(heldMb, { timeout: 10_000 }).toBeLessThan(300)
    expect(await other!.readFile('kept', 100_000)).toEqual(kept)
    expect(await shell(other!, 'echo alive')).toMatchObject({ stdout: 'alive\n' })
    await other!.stop()
  }, 120_000)

  it('comes back from a snapshot as it was, but with a new name, new randomness and the time of now', async () => {
    const first = await driver.start(LIMITS, 20_000)
    await first.writeFile('notes/kept.txt', new TextEncoder().encode('as it was'))
    const ref = await first.snapshot()
    // The first one goes on.
    const draw = 'head -c 16 /dev/urandom | hexdump -v -e \'1/1 "%02x"\''
    const before = (await shell(first, draw)).stdout
    await first.stop()

    const again = await driver.restore(ref, 20_000)
    expect(again.id).not.toBe(first.id)
    expect(new TextDecoder().decode(await again.readFile('notes/kept.txt', 100))).toBe('as it was')
    expect((await shell(again, draw)).stdout).not.toBe(before)
    expect(Math.abs(Number((await shell(again, 'date +%s')).stdout) - Date.now() / 1000)).toBeLessThan(5)
    await again.stop()

    const other = { ...ref, key: 'f'.repeat(64) }
    await expect(driver.restore(other, 5000)).rejects.toMatchObject({
      message: expect.stringContaining('another QEMU, accelerator, image or size'),
    })
  })

  it('has nothing left of a command once it is said to have ended', async () => {
    const sandbox = await driver.start(LIMITS, 20_000)
    for (let round = 0; round < 8; round++) {
      await shell(sandbox, 'for i in $(seq 12); do setsid sh -c "while :; do :; done" & done', { deadlineMs: 500 })
      expect((await shell(sandbox, 'ps')).stdout).not.toMatch(/while/)
    }
    await sandbox.stop()
  })

  it('takes no snapshot under a running command', async () => {
    const sandbox = await driver.start(LIMITS, 20_000)
    const exec = await sandbox.exec({ argv: ['sleep', '30'], deadlineMs: 60_000, outputBytes: 10 })
    await expect(sandbox.snapshot()).rejects.toMatchObject({ code: 'unsupported' })
    exec.signal('SIGKILL')
    expect(await exec.exit).toEqual({ kind: 'signal', signal: 'SIGKILL' })
    await sandbox.stop()
  })

  it('is killed when its agent stops answering, which is reported by name', async () => {
    const image = await testImage()
    const strict = qemuDriver({ image, accel: 'tcg', stateDir, poolSize: 0, heartbeatMs: 300 })
    const sandbox = await strict.start(LIMITS, 30_000)
    const exec = await sandbox.exec({ argv: ['sleep', '60'], deadlineMs: 60_000, outputBytes: 10 })
    const pids = pidsOf(sandbox.id)
    expect(pids).toHaveLength(1)
    process.kill(pids[0]!, 'SIGSTOP')
    expect(await exec.exit).toMatchObject({ kind: 'limit', limit: 'heartbeat' })
    expect(await sandbox.ended).toContain('stopped answering')
    await strict.close()
    expect(pidsOf(sandbox.id)).toEqual([])
  })

  it('leaves neither process nor memory behind', async () => {
    const own = qemuDriver({ image: await testImage(), accel: 'tcg', stateDir, poolSize: 1 })
    await own.prepare(LIMITS)
    const sandbox = await own.start(LIMITS, 20_000)
    const { id } = sandbox
    expect(pidsOf(id)).toHaveLength(1)
    await own.close()
    expect(pidsOf(id)).toEqual([])
    expect(existsSync(join('/dev/shm/waybill-node', id))).toBe(false)
  })

  it('reaps the machines and the memory of a node that is gone', async () => {
    // Process 1 is there, but started at another time: the owner of this name is dead.
    const id = 'wb-qemu-1-999999999999-0123456789ab'

    const left = join(await ramFolder(), id)
    await mkdir(left, { recursive: true })
    await writeFile(join(left, 'ram'), 'memory')
    expect(await driver.reap()).toContainEqual({ backend: 'qemu', id })
    expect(existsSync(left)).toBe(false)
  })

  it('never falls back: asked for hardware it uses hardware, or refuses with the reason', async () => {
    const kvm = qemuDriver({ image: await testImage(), accel: 'kvm', stateDir, poolSize: 0 })
    const probe = await kvm.probe(4000)
    expect(probe.accel).toBe('kvm')
    if (!probe.available) {
      expect(probe.reasons.join()).toMatch(/QEMU started no machine|did not start|\/dev\/kvm/)
      expect(probe.verifiedBy).toBeUndefined()
    }
    await kvm.close()
  })
})
