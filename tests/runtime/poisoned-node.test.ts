import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { freePort } from '../../scripts/bench/free-port.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Node, NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { programEnv } from '../program-env.ts'
import { chatAnswer } from '../upstream/answers.ts'
import { answer, scriptedUpstream } from '../upstream/scripted.ts'
import { KEY } from './api.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const alive = (child: ChildProcess | undefined) => child?.exitCode === null && child.signalCode === null

/** A program of its own process, which can be started again. */
function program(main: string, command: string, vars: Record<string, string>) {
  let child: ChildProcess | undefined
  let said = ''
  const on = {
    said: () => said,
    alive: () => alive(child),
    async kill() {
      if (!child || !alive(child)) return
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
    start(more: Record<string, string> = {}) {
      child = spawn(process.execPath, [main, command], {
        env: { ...programEnv, ...vars, ...more },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      child.stderr?.on('data', piece => (said += String(piece)))
    },
  }
  ends.push(on.kill)
  return on
}

it('a run that ends the process of its node is set aside there, is seen so at the control plane, and goes on when it is told to', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'poisoned-node-'))
  ends.push(() => rm(folder, { recursive: true, force: true }))
  const remote = await scriptedUpstream()
  ends.push(() => remote.close())
  const [api, tunnel] = [await freePort(), await freePort()]
  const control = program('runtime/cli/main.ts', 'serve', {
    PLATFORM_BIND: `127.0.0.1:${api}`,
    PLATFORM_TUNNEL_BIND: `127.0.0.1:${tunnel}`,
    PLATFORM_EMBEDDED_NODE: 'off',
    PLATFORM_DATA_DIR: join(folder, 'control'),
    PLATFORM_BOOTSTRAP_KEY: KEY,
    PLATFORM_LOG_LEVEL: 'warn',
  })
  const node = program('node-agent/main.ts', 'run', {
    PLATFORM_CONTROL_URL: `http://127.0.0.1:${tunnel}`,
    PLATFORM_DATA_DIR: join(folder, 'node'),
    NODE_AGENT_BACKENDS: 'none',
    NODE_AGENT_STATE_DIR: join(folder, 'state'),
    NODE_AGENT_IMAGE_DIR: join(folder, 'image'),
    PLATFORM_OUTBOUND_ALLOW: '127.0.0.1',
    PLATFORM_LOG_LEVEL: 'warn',
    PLATFORM_PROVIDER_OPENAI_API_KEY: 'k'.repeat(20),
    PLATFORM_PROVIDER_OPENAI_BASE_URL: remote.origin,
  })
  async function call(method: string, path: string, body?: object): Promise<string> {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const url = `http://127.0.0.1:${api}${path}`
    const got = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const text = await got.text()
    if (!got.ok) throw new Error(`${method} ${path}: ${got.status} ${text}`)
    return text
  }
  const json = async <T>(method: string, path: string, body?: object) => JSON.parse(await call(method, path, body)) as T
  const of = (id: string) => json<Run>('GET', `/v1/runs/${id}?fields=summary`)

  control.start()
  await expect.poll(() => call('GET', '/readyz').catch(() => ''), { timeout: 30_000 }).toContain('ok')
  const { id: nodeId, enrolToken } = await json<NodeCreated>('POST', '/v1/nodes', { name: 'one' })
  node.start({ PLATFORM_ENROL_TOKEN: enrolToken })
  const online = () =>
    expect.poll(async () => (await json<Node>('GET', `/v1/nodes/${nodeId}`)).status, { timeout: 30_000 }).toBe('online')
  await online()
  await call('POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai/gpt-4.1-mini' } })

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
      await node.kill()
      return
    }
    await answer(200, JSON.stringify(chatAnswer()), { 'content-type': 'application/json' })(response, seen, request)
  })
  const create = (prompt: string) => json<Run>('POST', '/v1/runs', { agentName: 'worker', input: { prompt } })
  const bystander = await create('stand by')
  await expect.poll(() => fine, { timeout: 30_000 }).toBe(1)
  const { id } = await create('poison')

  // Each start ends in the call, until the run is not taken up together with others any more.
  for (let start = 1; start <= 3; start++) {
    await expect.poll(() => [kills, node.alive()], { timeout: 30_000 }).toEqual([start, false])
    node.start()
  }
  await expect.poll(() => fine, { timeout: 30_000 }).toBeGreaterThan(3)
  mend()
  // Its last try is by itself.
  await expect.poll(() => [kills, node.alive()], { timeout: 60_000 }).toEqual([4, false])
  // What the node has reported by then is a matter of moments: the run is open, and not set aside yet.
  expect(['queued', 'running']).toContain((await of(id)).status)
  expect(await of(id)).not.toHaveProperty('parked')
  node.start()
  await online()

  await expect
    .poll(() => of(id), { timeout: 30_000 })
    .toMatchObject({
      status: 'waiting',
      parked: { reason: 'poisoned' },
    })
  await expect.poll(() => of(bystander.id), { timeout: 30_000 }).toMatchObject({ status: 'succeeded' })
  expect([kills, node.alive()]).toEqual([4, true])
  expect(node.said()).toContain('is set aside')
  expect(control.said()).toContain('is set aside')
  expect(await call('GET', '/metrics')).toMatch(/^waybill_remote_runs_set_aside_total 1$/m)

  // It stays so, whichever process starts again.
  await control.kill()
  control.start()
  await online().catch(online)
  expect(await of(id)).toMatchObject({ status: 'waiting', parked: { reason: 'poisoned' } })

  deadly = false
  await call('POST', `/v1/runs/${id}/signals/resume`, { value: null })
  await expect.poll(async () => (await of(id)).status, { timeout: 30_000 }).toBe('succeeded')
  expect(await of(id)).not.toHaveProperty('parked')
  const receipt = await json<Receipt>('GET', `/v1/runs/${id}/receipt`)
  const journal = await json<JournalExport>('GET', `/v1/runs/${id}/journal`)
  expect(await json<VerifyResult>('POST', '/v1/runs/receipts/verify', { receipt, journal })).toMatchObject({
    valid: true,
    checks: { signature: 'ok', journal: 'ok', record: 'ok' },
  })
}, 240_000)
