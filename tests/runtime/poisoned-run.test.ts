import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { freePort } from '../../scripts/bench/free-port.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { chatAnswer } from '../upstream/answers.ts'
import { answer, scriptedUpstream } from '../upstream/scripted.ts'
import { KEY } from './api.ts'

const root = new URL('../../', import.meta.url).pathname
const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** A service of its own process in a folder, which can be started again. */
async function service() {
  const folder = await mkdtemp(join(tmpdir(), 'poisoned-'))
  ends.push(() => rm(folder, { recursive: true, force: true }))
  const origin = `http://127.0.0.1:${await freePort()}`
  const env = {
    PATH: process.env.PATH,
    PLATFORM_BIND: new URL(origin).host,
    PLATFORM_DATA_DIR: folder,
    PLATFORM_BOOTSTRAP_KEY: KEY,
    PLATFORM_LOG_LEVEL: 'error',
    PLATFORM_RECOVERY_INTERVAL: '1s',
    PLATFORM_OUTBOUND_ALLOW: '127.0.0.1',
  }
  let child: ChildProcess | undefined
  let said = ''
  const on = {
    said: () => said,
    alive: () => child?.exitCode === null && child.signalCode === null,
    async kill() {
      if (!child || !on.alive()) return
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
    async start() {
      const started = spawn(process.execPath, [`${root}runtime/cli/main.ts`, 'serve'], {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      child = started
      started.stderr.on('data', piece => (said += String(piece)))
      started.stdout.resume()
    },
    ready: () =>
      expect
        .poll(async () => (await fetch(`${origin}/readyz`).catch(() => undefined))?.status, { timeout: 30_000 })
        .toBe(200),
    async call(method: string, path: string, body?: object): Promise<string> {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
      const got = await fetch(origin + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
      const text = await got.text()
      if (!got.ok) throw new Error(`${method} ${path}: ${got.status} ${text}`)
      return text
    },
    json: async <T>(method: string, path: string, body?: object) => JSON.parse(await on.call(method, path, body)) as T,
  }
  ends.push(on.kill)
  return on
}

it('a run that ends its process whenever it is taken up is set aside by itself, and goes on when it is told to', async () => {
  const remote = await scriptedUpstream()
  ends.push(() => remote.close())
  const on = await service()
  const { promise: mended, resolve: mend } = Promise.withResolvers<void>()
  let deadly = true
  let kills = 0
  let fine = 0
  remote.always(async (response, seen, request) => {
    if (!seen.body.toString().includes('poison')) {
      fine++
      await mended
    } else if (deadly) {
      kills++
      await on.kill()
      return
    }
    await answer(200, JSON.stringify(chatAnswer()), { 'content-type': 'application/json' })(response, seen, request)
  })
  await on.start()
  await on.ready()
  await on.call('POST', '/v1/settings/llm-providers', {
    provider: 'openai',
    apiKey: 'k'.repeat(20),
    baseUrl: remote.origin,
  })
  await on.call('POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai/gpt-4.1-mini' } })
  const create = (prompt: string) => on.json<Run>('POST', '/v1/runs', { agentName: 'worker', input: { prompt } })
  const bystander = await create('stand by')
  await expect.poll(() => fine).toBe(1)
  const { id } = await create('poison').catch(() => ({ id: '' }))

  // Each start ends in the call, until the run is not taken up together with others any more.
  for (let start = 1; start <= 3; start++) {
    await expect.poll(() => [kills, on.alive()], { timeout: 30_000 }).toEqual([start, false])
    fine = 0
    await on.start()
  }
  await on.ready()
  await expect.poll(() => fine, { timeout: 30_000 }).toBe(1)
  mend()
  const poisoned = id || (await on.json<Run[]>('GET', '/v1/runs')).find(one => one.id !== bystander.id)!.id
  // Its last try is by itself.
  await expect.poll(() => [kills, on.alive()], { timeout: 30_000 }).toEqual([4, false])
  await on.start()
  await on.ready()
  const of = (run: string) => on.json<Run>('GET', `/v1/runs/${run}`)
  await expect
    .poll(() => of(poisoned), { timeout: 30_000 })
    .toMatchObject({
      status: 'waiting',
      parked: { reason: 'poisoned' },
    })
  expect(await of(bystander.id)).toMatchObject({ status: 'succeeded' })
  expect([kills, on.alive()]).toEqual([4, true])
  expect(await on.call('GET', '/metrics')).toMatch(/^waybill_runs_set_aside_total 1$/m)
  expect(on.said()).toContain('is set aside')

  deadly = false
  await on.call('POST', `/v1/runs/${poisoned}/signals/resume`, { value: null })
  await expect.poll(async () => (await of(poisoned)).status, { timeout: 30_000 }).toBe('succeeded')
  expect(await of(poisoned)).not.toHaveProperty('parked')
}, 180_000)
