import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Driver, PooledDriver, Sandbox, SandboxLimits, SnapshotRef } from '../../node-agent/isolation/driver.ts'
import { groupMembers, listGroups } from '../../node-agent/isolation/oci/cgroups.ts'
import { isOrphan } from '../../node-agent/isolation/owned-id.ts'
import { escapeProbes } from '../../node-agent/isolation/testing/escape-probes.ts'
import { shell } from '../../node-agent/isolation/testing/run-command.ts'
import { sessionMachines } from '../../node-agent/session-machines.ts'
import { silentLog } from '../../shared/log/log.ts'
import { backend, hasOwnKernel, isMachine, liveDriver, note, noteMachine, patient, slowness } from './live-backend.ts'

const LIMITS: SandboxLimits = { memoryMb: 64, cpus: 1, pids: 24, diskMb: 16 }
/** Of a session that says nothing else. */
const SESSION: SandboxLimits = { memoryMb: 512, cpus: 1, pids: 128, diskMb: 1024 }
const START_MS = 30_000
const RESTORES = 12
const WARM_STARTS = 40
const TICKS_A_SECOND = 100

let stateDir: string
let raw: Driver
let driver: Driver
beforeAll(async () => {
  await noteMachine()
  stateDir = await mkdtemp(join(tmpdir(), 'waybill-live-'))
  await chmod(stateDir, 0o711)
  raw = await liveDriver(stateDir)
  driver = patient(raw)
})
afterAll(async () => {
  await raw.close()
  await rm(stateDir, { recursive: true, force: true })
})

async function timed<T>(work: Promise<T>): Promise<{ value: T; ms: number }> {
  const began = performance.now()
  const value = await work
  return { value, ms: Math.round(performance.now() - began) }
}

const say = async (sandbox: Sandbox, line: string) => (await shell(sandbox, line)).stdout
const spread = (times: readonly number[]) => {
  const sorted = times.toSorted((a, b) => a - b)
  const late = sorted[Math.ceil(sorted.length * 0.95) - 1]
  return `median ${sorted[Math.floor(sorted.length / 2)]} ms (${sorted[0]} to ${sorted.at(-1)}, 95th percentile ${late}, n=${sorted.length})`
}
/** As the kernel has them. */
function limitsInForce(id: string): string {
  const read = (controller: string, one: string, two: string) => {
    const at = [`/sys/fs/cgroup/waybill/${id}/${two}`, `/sys/fs/cgroup/${controller}/waybill/${id}/${one}`].find(
      existsSync,
    )
    return at === undefined ? 'none' : readFileSync(at, 'utf8').trim().split(' ')[0]!
  }
  const megabytes = Number(read('memory', 'memory.limit_in_bytes', 'memory.max')) / 2 ** 20
  const tasks = read('pids', 'pids.max', 'pids.max')
  const swap = Number(read('memory', 'memory.memsw.limit_in_bytes', 'memory.swap.max')) / 2 ** 20
  const quota = Number(read('cpu', 'cpu.cfs_quota_us', 'cpu.max')) / 1000
  return `memory ${megabytes} MB, with swap ${swap} MB, tasks ${tasks}, processor ${quota} of each 100 ms`
}
const mountsIn = (folder: string) =>
  readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .filter(line => line.includes(folder))

it('shows that it works, by what it is', async () => {
  const probe = await driver.probe(START_MS * slowness)
  await note(
    `- ${probe.backend} ${probe.version}, accelerator ${probe.accel ?? 'none'}, kernel inside ${probe.kernelRelease}`,
  )
  expect(probe).toMatchObject({ available: true, reasons: [], verifiedBy: expect.any(String) })
})

it('starts and ends', async () => {
  const { value: sandbox, ms } = await timed(driver.start(LIMITS, START_MS))
  const first = await timed(say(sandbox, 'echo here'))
  const stop = await timed(sandbox.stop())
  expect(first.value).toBe('here\n')
  await note(
    `- start ${ms} ms, first command ${first.ms} ms, stop ${stop.ms} ms (${LIMITS.memoryMb} + ${LIMITS.diskMb} MB)`,
  )
})

it('gets no more than its share of a processor, by the time that its processes used', async () => {
  const sandbox = await driver.start({ ...LIMITS, cpus: 0.25 }, START_MS)
  await note(
    `- in force on the host for ${LIMITS.memoryMb} + ${LIMITS.diskMb} MB, ${LIMITS.pids} processes: ${limitsInForce(sandbox.id)}`,
  )
  const used = async () => {
    let ticks = 0
    for (const pid of await groupMembers(sandbox.id)) {
      const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ').at(-1)!.split(' ')
      ticks += Number(fields[11]) + Number(fields[12])
    }
    return ticks / TICKS_A_SECOND
  }
  const exec = await sandbox.exec({
    argv: ['sh', '-c', 'for i in 1 2 3; do (while :; do :; done) & done; wait'],
    deadlineMs: 60_000,
    outputBytes: 10,
  })
  const [began, before] = [performance.now(), await used()]
  await new Promise(resolve => setTimeout(resolve, 10_000))
  const share = ((await used()) - before) / ((performance.now() - began) / 1000)
  await note(`- 0.25 of a processor asked for, ${share.toFixed(2)} used over 10 s of three busy loops`)
  expect(share).toBeGreaterThan(0.05)
  expect(share).toBeLessThan(0.3)
  exec.signal('SIGKILL')
  await sandbox.stop()
})

describe('against foreign code', () => {
  escapeProbes({
    driver: () => driver,
    limits: LIMITS,
    ownKernel: hasOwnKernel,
    survives: { memory: backend !== 'gvisor', pids: backend !== 'gvisor' },
    startMs: START_MS,
    slowness,
  })
})

describe.runIf(isMachine)('snapshots', () => {
  let first: Sandbox
  let ref: SnapshotRef
  const draw =
    'head -c 16 /dev/urandom | hexdump -v -e \'1/1 "%02x"\'; echo; cat /proc/sys/kernel/random/boot_id; date +%s'

  it('are taken of a machine that goes on, with the port that the host answers', async () => {
    first = await driver.start(LIMITS, START_MS)
    await first.serve(7707, stream => stream.end('from the host\n'))
    await first.writeFile('notes/kept.txt', new TextEncoder().encode('as it was'))
    await say(first, 'echo in memory > /tmp/kept')
    const { value, ms } = await timed(first.snapshot())
    ref = value
    const bytes = (await Promise.all((await readdir(ref.folder)).map(name => stat(join(ref.folder, name))))).reduce(
      (sum, { size }) => sum + size,
      0,
    )
    await note(`- snapshot ${ms} ms, ${Math.round(bytes / 2 ** 20)} MiB on disk`)
    expect(await say(first, 'cat /tmp/kept; nc 127.0.0.1 7707 < /dev/null')).toBe('in memory\nfrom the host\n')
  })

  it(`are what ${RESTORES} machines begin from, each with a name, randomness and a clock of its own`, async () => {
    const [restores, commands]: [number[], number[]] = [[], []]
    const seen = new Set<string>((await say(first, draw)).split('\n').slice(0, 2))
    for (let round = 0; round < RESTORES; round++) {
      const { value: again, ms } = await timed(driver.restore(ref, START_MS))
      const command = await timed(say(again, 'cat /tmp/kept /work/notes/kept.txt'))
      restores.push(ms)
      commands.push(command.ms)
      expect(command.value).toBe('in memory\nas it was')
      const [random, boot, clock] = (await say(again, draw)).split('\n')
      expect([seen.has(random!), seen.has(boot!)]).toEqual([false, false])
      for (const one of [random!, boot!]) seen.add(one)
      expect(Math.abs(Number(clock) - Date.now() / 1000)).toBeLessThan(5 * slowness)
      expect(again.id).not.toBe(first.id)
      await again.stop()
    }
    await note(`- restore ${spread(restores)}, first command after it ${spread(commands)}`)
  })

  it('of a machine that was brought back can be taken again', async () => {
    const second = await driver.restore(ref, START_MS)
    await say(second, 'echo more >> /tmp/kept')
    const next = await second.snapshot()
    await second.stop()
    const third = await driver.restore(next, START_MS)
    expect(await say(third, 'cat /tmp/kept')).toBe('in memory\nmore\n')
    await third.stop()
  })

  it('are not taken under a command, and not gone on from when they were changed or are of another', async () => {
    const exec = await first.exec({ argv: ['sleep', '60'], deadlineMs: 60_000, outputBytes: 10 })
    await expect(first.snapshot()).rejects.toMatchObject({ code: 'unsupported' })
    exec.signal('SIGKILL')
    await exec.exit
    await expect(driver.restore({ ...ref, key: 'f'.repeat(64) }, START_MS)).rejects.toMatchObject({
      code: 'start_failed',
    })
    const [name] = (await readdir(ref.folder)).toSorted().slice(0, 1)
    const file = await open(join(ref.folder, name!), 'r+')
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, 300_000)
    await file.write(Buffer.from([buffer[0]! ^ 1]), 0, 1, 300_000)
    await file.close()
    await expect(driver.restore(ref, START_MS)).rejects.toMatchObject({ code: 'start_failed' })
    await first.stop()
  })
})

it.runIf(!isMachine)('says that it takes no snapshot', async () => {
  const sandbox = await driver.start(LIMITS, START_MS)
  await expect(sandbox.snapshot()).rejects.toMatchObject({ code: 'unsupported' })
  await sandbox.stop()
})

it.runIf(isMachine)('keeps the machine of a session between turns, and beyond its being put away', async () => {
  const sessions = sessionMachines({ log: silentLog() })
  const wanted = { driver, limits: SESSION, idleMs: 500 }
  const opened = await timed(sessions.acquire('one', wanted))
  const turn = async (line: string) => {
    const used = await timed(sessions.use('one', wanted))
    const output = await say(used.value.sandbox, line)
    used.value.done()
    return { output, fresh: used.value.fresh, ms: used.ms }
  }
  expect(await turn('echo kept > /work/a; echo kept > /tmp/b')).toMatchObject({ fresh: false })
  expect(await turn('cat /work/a /tmp/b')).toMatchObject({ fresh: false, output: 'kept\nkept\n' })
  const beganIdle = performance.now()
  await expect.poll(() => sessions.of('one')?.state, { timeout: 300_000 }).toBe('released')
  const putAway = Math.round(performance.now() - beganIdle)
  const back = await turn('cat /work/a /tmp/b')
  expect(back).toMatchObject({ fresh: false, output: 'kept\nkept\n' })
  await note(
    `- session (${SESSION.memoryMb} + ${SESSION.diskMb} MB): opened in ${opened.ms} ms, put away in at most ${putAway} ms, back in ${back.ms} ms`,
  )
  await sessions.release('one')
  await sessions.close()
})

it.runIf(isMachine)(`has one waiting for each of ${WARM_STARTS} starts, one after another`, async () => {
  const pooled = raw as PooledDriver
  const times: number[] = []
  for (let round = 0; round < WARM_STARTS; round++) {
    await pooled.prepare(LIMITS)
    const { value: sandbox, ms } = await timed(driver.start(LIMITS, START_MS))
    const command = await timed(say(sandbox, 'echo here'))
    expect([sandbox.pooled, command.value]).toEqual([true, 'here\n'])
    times.push(ms + command.ms)
    await sandbox.stop()
  }
  await note(`- from the pool, start and first command: ${spread(times)}`)
})

it('of a process that was killed is ended and removed by the next', async () => {
  const owner = spawn(process.execPath, [join(import.meta.dirname, 'crashed-owner.ts'), stateDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const id = await new Promise<string>(resolve => owner.stdout.once('data', chunk => resolve(String(chunk).trim())))
  owner.kill('SIGKILL')
  await new Promise(resolve => owner.once('exit', resolve))
  const found = (await raw.reap()).map(one => one.id)
  // The agent of a container ends with its channel, and a group that is gone already is not reported.
  if (isMachine) expect(found).toContain(id)
  expect((await listGroups()).filter(name => isOrphan(name, raw.backend))).toEqual([])
})

it('leaves neither mount, folder, group nor snapshot behind', async () => {
  await raw.close()
  expect(mountsIn(stateDir)).toEqual([])
  expect((await listGroups()).filter(name => name.startsWith(`wb-${raw.backend}-${process.pid}-`))).toEqual([])
  const left = await readdir(stateDir, { recursive: true })
  const ours = left.filter(path => path.includes(`wb-${raw.backend}-${process.pid}-`) && !path.includes('snapshots'))
  expect(ours).toEqual([])
  expect(existsSync(`/dev/shm/waybill-node/wb-${raw.backend}-${process.pid}`)).toBe(false)
  await note(`- ended with backend ${backend}: 0 mounts, 0 jails, 0 groups left`)
})
