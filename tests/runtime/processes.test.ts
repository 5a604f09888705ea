import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Node, NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { Session, TurnReply } from '../../shared/wire/runtime/session.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { expectWithin } from '../crowding.ts'
import { eventually } from '../eventually.ts'
import { programEnv } from '../program-env.ts'
import { slowProvider, wholeStream } from '../router/many-processes.ts'
import { ask, bearer, clients, fresh, type ManyProcesses, manyProcesses } from './many-processes.ts'
import { sseReader } from './sse.ts'

const SOON = { timeout: 30_000 }

describe.runIf(await sqldAvailable())('several processes of a runtime on a libSQL server', () => {
  let folder: string
  let sqld: Sqld
  let provider: Awaited<ReturnType<typeof slowProvider>>
  let service: ManyProcesses

  const begin = () =>
    manyProcesses({
      PLATFORM_DATABASE_URL: sqld.primaryUrl,
      PLATFORM_DATA_DIR: join(folder, 'data'),
      PLATFORM_PROVIDER_ANTHROPIC_API_KEY: 'none',
      PLATFORM_PROVIDER_ANTHROPIC_BASE_URL: provider.origin,
      PLATFORM_OUTBOUND_ALLOW: '127.0.0.1',
      PLATFORM_MAX_CONCURRENT_RUNS: '2',
    })

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-processes-'))
    sqld = await startSqld()
    provider = await slowProvider()
    service = await begin()
    const manifest = { model: 'demo/echo', tools: ['wait'] }
    expect((await service.call('POST', '/v1/agents', { name: 'worker', manifest })).status).toBe(201)
  }, 60_000)
  afterAll(async () => {
    service?.child.kill('SIGKILL')
    provider?.close()
    await sqld?.stop()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  const counted = async (name: string) => {
    const { body: page } = await service.call<string>('GET', '/metrics')
    expect(page.match(new RegExp(`^# TYPE ${name} `, 'gm'))).toHaveLength(1)
    return [...page.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    )
  }

  const openRuns = async () => {
    const { body: runs } = await service.call<Run[]>('GET', '/v1/runs?limit=200')
    return runs.filter(({ status }) => !isTerminal(status)).length
  }

  /** Each ended once and rightly: its events are numbered without a gap, and its receipt holds. */
  async function expectRight(runs: readonly Run[]): Promise<void> {
    expect(runs.filter(({ status }) => status !== 'succeeded')).toEqual([])
    expect(new Set(runs.map(({ id }) => id)).size).toBe(runs.length)
    for (const { id } of runs.filter((_, at) => at % 10 === 0)) {
      const { body: journal } = await service.call<JournalExport>('GET', `/v1/runs/${id}/journal`)
      expect(journal.events.map(({ seq }) => seq)).toEqual(journal.events.map((_, at) => at + 1))
      const completed = journal.events.filter(({ kind }) => kind === 'step_completed').map(({ stepId }) => stepId)
      expect(new Set(completed).size).toBe(completed.length)
      const { body: receipt } = await service.call<Receipt>('GET', `/v1/runs/${id}/receipt`)
      const { body: verified } = await service.call<VerifyResult>('POST', '/v1/runs/receipts/verify', {
        receipt,
        journal,
      })
      expect(verified).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
    }
  }

  it('answers in each of them, and /metrics has the sum of all in whichever', async () => {
    const pids = await service.pids()
    expect(pids).toHaveLength(2)
    const before = await counted('waybill_runs_total')
    const load = clients(service.origin, 4)
    await load.further(12)
    await load.stop()
    expect([load.failed, load.refused]).toEqual([[], []])
    for (let look = 0; look < 3; look++) expect(await counted('waybill_runs_total')).toBe(before + load.ended.length)
    await expectRight(load.ended)
  }, 60_000)

  it('a process is killed while clients call: no call of the others fails, and every run ends once', async () => {
    const before = await service.pids()
    const load = clients(service.origin, 6)
    await load.further(12)
    process.kill(before[0]!, 'SIGKILL')
    await eventually(async () => {
      const now = await service.pids()
      expect([now.length, now.includes(before[0]!), now.includes(before[1]!)]).toEqual([2, false, true])
    }, SOON)
    await load.further(20)
    await load.stop()
    // Each client has one connection: those of the other process never failed, and none failed twice.
    const hit = load.failed.map(({ client }) => client)
    expect(new Set(hit).size).toBe(hit.length)
    expect(hit.length).toBeLessThan(6)
    expect(load.refused).toEqual([])
    await expectRight(load.ended)
    expect(service.logs.join('\n')).toContain('a process ended and is started anew')
  }, 90_000)

  it('all are replaced while clients call, without a failed call, and a stream of events goes on at another one', async () => {
    const before = await service.pids()
    // What the killed process had taken ends in another one, and counts there.
    await eventually(async () => expect(await openRuns()).toBe(0), SOON)
    const already = await counted('waybill_runs_total')
    const load = clients(service.origin, 6)
    await load.further(6)
    const { body: slow } = await service.call<Run>('POST', '/v1/runs', {
      agentName: 'worker',
      input: { prompt: '/call*4 wait {"seconds":1}' },
    })
    const heard = followed(service.origin, slow.id)
    service.child.kill('SIGUSR2')
    await eventually(() => expect(service.logs.join('\n')).toContain('all processes were replaced'), {
      timeout: 60_000,
    })
    await load.further(10)
    await load.stop()
    expect([load.failed, load.refused]).toEqual([[], []])
    await expectRight(load.ended)
    const ids = await heard
    expect(ids).toEqual(ids.map((_, at) => at + 1))
    const after = await service.pids()
    expect([after.length, after.filter(pid => before.includes(pid))]).toEqual([2, []])
    expect(await counted('waybill_runs_total')).toBe(already + load.ended.length + 1)
  }, 120_000)

  it('a node that has dialled one of them executes runs that are posted to each', async () => {
    const { body: announced } = await service.call<NodeCreated>('POST', '/v1/nodes', { name: 'one' })
    const { body: wellKnown } = await service.call<{ endpoint: string }>('GET', '/.well-known/platform-nodes')
    const node = spawn(process.execPath, ['node-agent/main.ts', 'run'], {
      env: {
        ...programEnv,
        PLATFORM_CONTROL_URL: wellKnown.endpoint,
        PLATFORM_ENROL_TOKEN: announced.enrolToken,
        PLATFORM_DATA_DIR: join(folder, 'node'),
        NODE_AGENT_BACKENDS: 'none',
        NODE_AGENT_STATE_DIR: join(folder, 'state'),
        NODE_AGENT_IMAGE_DIR: join(folder, 'image'),
      },
      stdio: 'ignore',
    })
    try {
      const online = async () =>
        expect((await service.call<Node>('GET', `/v1/nodes/${announced.id}`)).body.status).toBe('online')
      await eventually(online, SOON)
      const agent = { name: 'far', labels: { 'waybill.pool': 'default' }, manifest: { model: 'demo/echo' } }
      expect((await service.call('POST', '/v1/agents', agent)).status).toBe(201)
      const ranThere = async () => {
        const made = await Promise.all(
          Array.from({ length: 6 }, () =>
            service.call<Run>('POST', '/v1/runs', { agentName: 'far', input: { prompt: 'canary' } }),
          ),
        )
        for (const { body } of made)
          await eventually(async () => {
            // What only the node has is asked of it through the process that it has dialled.
            const { body: run } = await service.call<Run>('GET', `/v1/runs/${body.id}`)
            expect(run).toMatchObject({ status: 'succeeded', nodeId: announced.id, input: { prompt: 'canary' } })
          }, SOON)
      }
      await ranThere()
      // Wherever it dials next.
      for (const pid of (await service.pids()).slice(0, 1)) process.kill(pid, 'SIGKILL')
      await eventually(async () => expect(await service.pids()).toHaveLength(2), SOON)
      await eventually(online, SOON)
      await ranThere()
    } finally {
      const gone = once(node, 'exit')
      node.kill('SIGTERM')
      await gone
    }
  }, 120_000)

  it('the stream of a session has each word, whichever process executes the turn', async () => {
    const manifest = { model: 'anthropic/claude-haiku-4-5' }
    expect((await service.call('POST', '/v1/agents', { name: 'talker', manifest })).status).toBe(201)
    const { body: session } = await service.call<Session>('POST', '/v1/sessions', { agentName: 'talker' })
    const streams = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const answer = await fetch(`${service.origin}/v1/sessions/${session.id}/events`, { headers: bearer })
        return sseReader(answer.body!)
      }),
    )
    const content = 'hello'
    const { body: reply } = await service.call<TurnReply>('POST', `/v1/sessions/${session.id}/messages`, { content })
    expect(reply).toMatchObject({ status: 'completed', text: wholeStream.join('') })
    for (const stream of streams) {
      let text = ''
      for (let one = await stream.next(); one?.event !== 'message_completed'; one = await stream.next())
        if (one?.event === 'message_delta') text += one.data.delta as string
      expect(text).toBe(reply.text)
      await stream.stop()
    }
  }, 60_000)

  it('runs that are posted over one connection are executed by all of them, once the first has no worker free', async () => {
    const agent = fresh()
    const posted: Run[] = []
    for (let at = 0; at < 4; at++) {
      const body = { agentName: 'talker', input: { prompt: 'hello' } }
      posted.push((await ask<Run>(agent, service.origin, 'POST', '/v1/runs', body)).body)
    }
    const began = performance.now()
    const reads = () => Promise.all(posted.map(({ id }) => ask<Run>(agent, service.origin, 'GET', `/v1/runs/${id}`)))
    await eventually(async () => {
      expect((await reads()).map(({ body }) => body.status)).toEqual(['running', 'running', 'running', 'running'])
    }, SOON)
    // An answer of this provider takes four seconds.
    expectWithin(performance.now() - began, 3000)
    await eventually(async () => expectRight((await reads()).map(({ body }) => body)), SOON)
    await agent.close()
  }, 60_000)

  it('refuses a session with a machine of its own, which would belong to one of them', async () => {
    const manifest = { model: 'demo/echo', session: { dedicatedMicrovm: true } }
    expect((await service.call('POST', '/v1/agents', { name: 'owner', manifest })).status).toBe(201)
    const { status, body } = await service.call<{ error: string }>('POST', '/v1/sessions', { agentName: 'owner' })
    expect([status, body.error]).toEqual([503, expect.stringContaining('start the runtime with PLATFORM_PROCESSES=1')])
  })

  it('tries to log in are counted over all of them', async () => {
    const statuses: number[] = []
    for (let at = 0; at < 14; at++) {
      const { status } = await service.call('POST', '/auth/login', { email: 'a@example.com', password: 'x'.repeat(20) })
      statuses.push(status)
    }
    expect(statuses.filter(status => status === 401).length).toBe(10)
    expect(statuses.slice(-2)).toEqual([429, 429])
  }, 60_000)

  it('SIGTERM lets open steps finish and ends all of them; what is unfinished goes on after the next start', async () => {
    const { body: run } = await service.call<Run>('POST', '/v1/runs', {
      agentName: 'worker',
      input: { prompt: '/call*3 wait {"seconds":1}' },
    })
    const pids = await service.pids()
    expect(await service.stop()).toBe(0)
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow()
    service = await begin()
    await eventually(async () => {
      const { body } = await service.call<Run>('GET', `/v1/runs/${run.id}`)
      expect(isTerminal(body.status)).toBe(true)
      await expectRight([body])
    }, SOON)
    // Without the first process nothing can be accepted.
    const left = await service.pids()
    service.child.kill('SIGKILL')
    await eventually(() => {
      for (const pid of left) expect(() => process.kill(pid, 0), String(pid)).toThrow()
    }, SOON)
  }, 60_000)
})

it('says what to do where several processes cannot be', async () => {
  const server = { PLATFORM_DATABASE_URL: 'http://127.0.0.1:1' }
  const wrong: [args: string[], vars: Record<string, string>, sentence: string][] = [
    [['--processes', '2'], {}, 'one process writes a file'],
    [['--processes', '2'], { PLATFORM_DATABASE_URL: 'file:/tmp/other.db' }, 'one process writes a file'],
    [['--processes', '5'], server, 'at most 4 processes write to one database'],
    [['--processes', 'many'], server, 'expected auto, or a number of processes from 1 to 4'],
    [['--processes', '2'], { ...server, PLATFORM_PEER_URL: 'http://127.0.0.1:9' }, 'run one process here'],
    [['--processes', '2', '--with-router'], server, 'beside a router the runtime is one process'],
    [['--with-router'], { ...server, PLATFORM_PROCESSES: 'auto' }, 'beside a router the runtime is one process'],
  ]
  await Promise.all(
    wrong.map(async ([args, vars, sentence]) => {
      const env = { ...programEnv, PLATFORM_BIND: '127.0.0.1:0', ...vars }
      const run = promisify(execFile)(process.execPath, ['runtime/cli/main.ts', 'serve', ...args], { env })
      await expect(run, sentence).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) })
    }),
  )
}, 60_000)

/** The numbers of a run's events, over as many connections as it takes. */
async function followed(origin: string, id: string): Promise<number[]> {
  const ids: number[] = []
  for (let tries = 0; tries < 20; tries++) {
    const headers = { ...bearer, 'last-event-id': String(ids.at(-1) ?? 0) }
    const answer = await fetch(`${origin}/v1/runs/${id}/events`, { headers })
    // There is nothing after the last event of a run that has ended.
    if (answer.status === 204) return ids
    expect(answer.status).toBe(200)
    for (const { id: seq } of await sseReader(answer.body!).all()) ids.push(Number(seq))
  }
  throw new Error(`the stream did not come to its end: ${ids.join()}`)
}
