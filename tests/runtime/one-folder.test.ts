import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { freePort } from '../../scripts/bench/free-port.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { programEnv } from '../program-env.ts'
import { KEY } from './api.ts'

const root = new URL('../../', import.meta.url).pathname
const running: ChildProcess[] = []
const folders: string[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map(stopped))
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

async function runtimeOn(folder: string) {
  const origin = `http://127.0.0.1:${await freePort()}`
  const env = {
    ...programEnv,
    PLATFORM_BIND: new URL(origin).host,
    PLATFORM_DATA_DIR: folder,
    PLATFORM_BOOTSTRAP_KEY: KEY,
    PLATFORM_LOG_LEVEL: 'error',
    PLATFORM_RECOVERY_INTERVAL: '1s',
  }
  const child = spawn(process.execPath, [`${root}runtime/cli/main.ts`, 'serve'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  let said = ''
  child.stderr?.on('data', piece => (said += String(piece)))
  child.stdout?.resume()
  await expect
    .poll(
      async () => {
        if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${said}`)
        return (await fetch(`${origin}/readyz`).catch(() => undefined))?.status
      },
      { timeout: 30_000 },
    )
    .toBe(200)
  return {
    child,
    async json<T>(method: string, path: string, body?: object): Promise<T> {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
      const answer = await fetch(origin + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
      return JSON.parse(text) as T
    },
  }
}

it('two processes on one data folder share its runs: each is executed once, and the one that is left goes on', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-one-folder-'))
  folders.push(folder)
  const first = await runtimeOn(folder)
  const second = await runtimeOn(folder)
  const both = [first, second]
  await first.json('POST', '/v1/agents', { name: 'worker', manifest: { model: 'demo/echo', tools: ['wait'] } })
  const made = async (number: number, prompt: string) =>
    (await both[number % 2]!.json<Run>('POST', '/v1/runs', { agentName: 'worker', input: { prompt } })).id
  const ids = await Promise.all(Array.from({ length: 20 }, (_, n) => made(n, '/call*2 wait {"seconds":0}')))
  const ended = async (ids: readonly string[]) => {
    const runs = await Promise.all(ids.map(id => second.json<Run>('GET', `/v1/runs/${id}`)))
    return runs.map(({ status }) => (isTerminal(status) ? status : 'open'))
  }
  const all = (ids: readonly string[]) => ids.map(() => 'succeeded')
  await expect.poll(() => ended(ids), { timeout: 30_000 }).toEqual(all(ids))
  for (const id of ids) {
    const { events } = await first.json<JournalExport>('GET', `/v1/runs/${id}/journal`)
    const steps = events.filter(({ kind }) => kind === 'step_completed').map(({ stepId }) => stepId)
    expect(new Set(steps).size).toBe(steps.length)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
  }
  const left = await Promise.all(Array.from({ length: 6 }, (_, n) => made(n, '/call*2 wait {"seconds":1}')))
  await stopped(first.child)
  await expect.poll(() => ended(left), { timeout: 45_000 }).toEqual(all(left))
}, 120_000)
