import { chmod, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildImage } from '../../node-agent/guest/build-image.ts'
import { INPUTS_FOLDER } from '../../node-agent/guest/image-inputs.ts'
import { openImage } from '../../node-agent/guest/image-manifest.ts'
import type { Sandbox, SnapshotRef } from '../../node-agent/isolation/driver.ts'
import { qemuDriver } from '../../node-agent/isolation/qemu/qemu-driver.ts'
import type { Bench, Figure } from './harness.ts'

const SESSIONS = 100
/** Of a session that says nothing else. */
const LIMITS = { memoryMb: 512, cpus: 1, pids: 128, diskMb: 1024 }
const DEADLINE_MS = 60_000
const MB = 1024 * 1024

/** What machines without a turn cost, and what is left of that once they were put away. */
export const densityBench: Bench = {
  title: 'Idle session machines',
  about: `${SESSIONS} machines of ${LIMITS.memoryMb} MB and a workspace of ${LIMITS.diskMb} MB, one for each session, with a turn that writes a file; first all of them alive and idle, then all put away as sessions do after their idle time. Memory is what the host has less than before; QEMU runs on its software emulation.`,
  unit: 'sessions/s',
  rounds: 1,
  expectations: [
    { says: 'memory of an idle machine that was put away, MB', value: m => figure(m.figures, PUT_AWAY), atMost: 5 },
    { says: 'machines that came back as they were', value: m => figure(m.figures, BACK), atLeast: SESSIONS },
  ],
  async prepare() {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-density-'))
    await chmod(folder, 0o711)
    const stateDir = join(folder, 'state')
    await buildImage(INPUTS_FOLDER, join(folder, 'image'))
    const driver = qemuDriver({ image: (await openImage(join(folder, 'image')))!, stateDir, accel: 'tcg', poolSize: 0 })
    const figures: Figure[] = []
    const say = (name: string, value: number, unit: string) => void figures.push({ name, value, unit })

    async function opened(): Promise<Sandbox> {
      const sandbox = await driver.start(LIMITS, DEADLINE_MS)
      await said(sandbox, 'echo kept > /tmp/a')
      return sandbox
    }
    async function putAway(sandbox: Sandbox): Promise<SnapshotRef> {
      const ref = await sandbox.snapshot()
      await sandbox.stop()
      return ref
    }

    return {
      variants: [
        {
          name: 'opened, with a first turn',
          async round() {
            figures.length = 0
            // The template, which all of them share.
            await (await opened()).stop()
            const before = await available()
            const began = performance.now()
            const machines: Sandbox[] = []
            for (let made = 0; made < SESSIONS; made++) machines.push(await opened())
            const seconds = (performance.now() - began) / 1000
            say('memory of an idle machine that is alive', (before - (await available())) / SESSIONS, 'MB')
            say('processor of all while idle', await processorShare(10_000), '% of one')
            const away = performance.now()
            const refs: SnapshotRef[] = []
            for (const machine of machines) refs.push(await putAway(machine))
            say('put away, each', (performance.now() - away) / SESSIONS, 'ms')
            say(PUT_AWAY, Math.max(0, (before - (await available())) / SESSIONS), 'MB')
            say('disk of one that was put away', (await bytesIn(stateDir)) / MB / SESSIONS, 'MB')
            const times: number[] = []
            let same = 0
            for (const ref of refs) {
              const from = performance.now()
              const machine = await driver.restore(ref, DEADLINE_MS)
              if ((await said(machine, 'cat /tmp/a')) === 'kept\n') same++
              times.push(performance.now() - from)
              await machine.stop()
              await rm(ref.folder, { recursive: true })
            }
            times.sort((a, b) => a - b)
            say('back with a turn, median', times[SESSIONS / 2]!, 'ms')
            say('back with a turn, 95th percentile', times[Math.ceil(SESSIONS * 0.95) - 1]!, 'ms')
            figures.push({ name: BACK, value: same, unit: `of ${SESSIONS}`, exact: true })
            return SESSIONS / seconds
          },
        },
      ],
      figures: async () => figures,
      async close() {
        await driver.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

const PUT_AWAY = 'memory of a machine that was put away'
const BACK = 'machines that came back as they were'
const figure = (figures: readonly Figure[], name: string) => figures.find(one => one.name === name)?.value ?? Number.NaN

async function said(sandbox: Sandbox, line: string): Promise<string> {
  const command = await sandbox.exec({ argv: ['/bin/sh', '-c', line], deadlineMs: DEADLINE_MS, outputBytes: 1000 })
  let output = ''
  for await (const chunk of command.stdout) output += Buffer.from(chunk).toString()
  await command.exit
  return output
}

/** In MB, as the kernel counts what a new program could have. */
async function available(): Promise<number> {
  const found = /^MemAvailable:\s+(\d+) kB/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]
  return found === undefined ? freemem() / MB : Number(found) / 1024
}

async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true })
  const sizes = await Promise.all(names.map(name => stat(join(folder, name)).then(({ blocks }) => blocks * 512)))
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** What the processes of machines use together, over a while. */
async function processorShare(forMs: number): Promise<number> {
  const ticks = async () => {
    let all = 0
    for (const pid of (await readdir('/proc')).filter(name => /^\d+$/.test(name))) {
      const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
      if (!line.includes('(qemu-system')) continue
      const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
      all += Number(fields[11]) + Number(fields[12])
    }
    return all
  }
  const before = await ticks()
  await new Promise(resolve => setTimeout(resolve, forMs))
  return (((await ticks()) - before) * 10) / (forMs / 100)
}
