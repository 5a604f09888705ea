import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { listGroups } from '../../node-agent/isolation/oci/cgroups.ts'
import { backend, isMachine, liveDriver, note, slowness } from './live-backend.ts'

const KILLS = Number(process.env.WAYBILL_LIVE_KILLS ?? 50)
const LIVES_MEASURED = 2
const backendName = backend === 'qemu-kvm' || backend === 'qemu-tcg' ? 'qemu' : backend

let stateDir: string
beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'waybill-kills-'))
  await chmod(stateDir, 0o711)
})
afterAll(() => rm(stateDir, { recursive: true, force: true }))

interface Owner {
  child: ChildProcess
  /** The next line that it prints. */
  line(): Promise<string>
}

function begin(): Owner {
  const args = [join(import.meta.dirname, 'killed-owner.ts'), stateDir, isMachine ? 'snapshots' : 'none']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  return {
    child,
    async line() {
      const { value, done } = await lines.next()
      if (done === true) throw new Error('the process ended by itself')
      return value
    },
  }
}

async function kill({ child }: Owner): Promise<void> {
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** Everything that bears the name of a sandbox of this backend, or stands in the folder of its state. */
async function leftBehind(): Promise<string[]> {
  const named = (name: string) => name.includes(`wb-${backendName}-`)
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .filter(line => line.includes(stateDir) || named(line))
    .map(line => `mount ${line.split(' ')[1]}`)
  const groups = (await listGroups()).filter(named).map(name => `group ${name}`)
  const files = (await readdir(stateDir, { recursive: true })).filter(named)
  const shared = '/dev/shm/waybill-node'
  const memory = existsSync(shared) ? readdirSync(shared).filter(named) : []
  const processes = readdirSync('/proc')
    .filter(pid => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(stateDir)
      } catch {
        return false
      }
    })
  return [
    ...mounts,
    ...groups,
    ...files.map(path => `file ${path}`),
    ...memory.map(name => `memory ${name}`),
    ...processes.map(pid => `process ${pid}`),
  ]
}

it(`is killed at ${KILLS} random instants of a sandbox's life, and the next process removes what is left`, async () => {
  const measured = begin()
  await measured.line()
  const began = performance.now()
  for (let life = 0; life < LIVES_MEASURED; life++) await measured.line()
  const lifeMs = (performance.now() - began) / LIVES_MEASURED
  await kill(measured)
  const instants: number[] = []
  for (let round = 0; round < KILLS; round++) {
    const owner = begin()
    // It has removed what the one before left.
    await owner.line()
    const instant = Math.random() * lifeMs * 1.2
    instants.push(Math.round(instant))
    await new Promise(resolve => setTimeout(resolve, instant))
    await kill(owner)
  }
  const last = await liveDriver(stateDir)
  const foundBefore = (await leftBehind()).length
  const reaped = await last.reap()
  expect(await leftBehind(), `killed at ${instants.join(', ')} ms`).toEqual([])
  const probe = await last.probe(30_000 * slowness)
  expect(probe.available).toBe(true)
  await last.close()
  await note(
    `- killed ${KILLS} times within ${Math.round(lifeMs)} ms of life: after the last, ${foundBefore} things left and ${reaped.length} sandboxes removed; then 0 mounts, groups, files and processes`,
  )
}, 3_600_000)
