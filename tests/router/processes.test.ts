import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Agent } from 'undici'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { eventually } from '../eventually.ts'
import { programEnv } from '../program-env.ts'
import {
  ask,
  clients,
  type ManyProcesses,
  manyProcesses,
  routingConfig,
  slowProvider,
  streamed,
  wholeStream,
} from './many-processes.ts'

let folder: string
let provider: Awaited<ReturnType<typeof slowProvider>>
let names = 0
const started: ManyProcesses[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-processes-'))
  provider = await slowProvider()
})
afterAll(async () => {
  // What a test that failed has left.
  for (const { child } of started) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  provider.close()
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

async function service(more = '', vars: Record<string, string> = {}) {
  const name = `${names++}`
  const [config, db] = [join(folder, `${name}.toml`), join(folder, `${name}.db`)]
  await writeFile(config, routingConfig(provider.origin, more))
  const made = await manyProcesses(['--config', config, '--db', db], {
    ROUTER_LOG: 'router.processes=info,error',
    ...vars,
  })
  started.push(made)
  return { ...made, db, config }
}

/** What the offline verifier says of a store. */
async function verified(db: string): Promise<string> {
  const run = promisify(execFile)(process.execPath, ['router/cli/main.ts', 'verify', '--db', db], { env: programEnv })
  return (await run).stdout
}

async function storedIds(path: string): Promise<Set<string>> {
  const db = await openDb(path)
  const { rows } = await db.execute('select trace_id from traces')
  db.close()
  return new Set(rows.map(row => String(row.trace_id)))
}

/** Calls one after the other, until nothing is reserved beside them and the next could pass the cap. */
async function untilRefused(origin: string): Promise<{ more: number; used: number }> {
  for (let more = 0; ; more++) {
    const agent = fresh()
    const { status, text } = await ask(origin, agent)
    await agent.close()
    if (status === 402) return { more, used: Math.round(Number(/of which ([\d.e-]+) USD/.exec(text)?.[1]) * 1e9) }
    expect([status, more < 500]).toEqual([200, true])
  }
}

const fresh = () => new Agent({ connections: 1, pipelining: 1 })

it('several processes are one router: one chain, one page of metrics, each finds the calls of the others', async () => {
  const { origin, db, stop, pids } = await service()
  const pid = await pids()
  expect([pid.serving.length, pid.writer > 0]).toEqual([2, true])
  for (let call = 0; call < 12; call++) {
    const agent = fresh()
    const { status, traceId } = await ask(origin, agent)
    expect(status).toBe(200)
    await agent.close()
    // The next connection is the next process's, and asks at once.
    const other = fresh()
    const report = JSON.stringify({ request_id: traceId, outcome: 'correct' })
    const { statusCode, body } = await other.request({
      origin,
      path: '/v1/feedback',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: report,
    })
    expect([statusCode, await body.text()]).toEqual([202, expect.anything()])
    await other.close()
  }
  // In each process, and for as often as one asks.
  for (let look = 0; look < 4; look++) {
    const page = await (await fetch(`${origin}/metrics`, { headers: { connection: 'close' } })).text()
    expect(page).toMatch(/^router_requests_total\{[^}]*\} 12$/m)
    expect(page.match(/^# TYPE router_requests_total /gm)).toHaveLength(1)
  }
  expect(await stop()).toBe(0)
  expect(await verified(db)).toContain('valid: 12 records')
}, 120_000)

it('a killed process takes only the calls that it was answering, and no receipt of an answered one', async () => {
  const { origin, db, stop, pids, logs } = await service('', { ROUTER_RECEIPTS: 'durable' })
  const load = clients(origin, 8)
  await load.further(40)
  const before = await pids()
  process.kill(before.serving[0]!, 'SIGKILL')
  await load.further(40)
  await eventually(async () => expect((await pids()).serving).toHaveLength(2))
  await load.further(40)
  await load.stop()
  // Each client has one connection: those of the other process never failed, and none failed twice.
  const hit = load.failed.map(({ client }) => client)
  expect(new Set(hit).size).toBe(hit.length)
  expect(hit.length).toBeLessThan(8)
  expect(load.answered.filter(({ status }) => status !== 200)).toEqual([])
  expect((await pids()).serving).toContain(before.serving[1])
  expect(logs.join('\n')).toContain('a process ended and is started anew')
  expect(await stop()).toBe(0)
  const stored = await storedIds(db)
  expect(load.answered.filter(({ traceId }) => !stored.has(traceId))).toEqual([])
  expect(await verified(db)).toContain(`valid: ${stored.size} records`)
}, 180_000)

it('a connection that was given to a process that ends before it takes it goes to another one', async () => {
  const { origin, stop, pids } = await service()
  const { serving } = await pids()
  // Neither of them takes anything; each is sent a connection.
  for (const pid of serving) process.kill(pid, 'SIGSTOP')
  const agents = Array.from({ length: 6 }, fresh)
  const calls = agents.map(agent => ask(origin, agent))
  await pause(500)
  process.kill(serving[0]!, 'SIGKILL')
  process.kill(serving[1]!, 'SIGCONT')
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
  await Promise.all(agents.map(agent => agent.close()))
  expect(await stop()).toBe(0)
}, 60_000)

it('the writer is killed: no call fails, no receipt is lost, and a budget is kept to the last nano-dollar', async () => {
  // Each answer costs 35,000 nano-dollars.
  const { origin, db, stop, pids } = await service('[budget]\nper_day_usd = 0.01\n')
  const load = clients(origin, 8)
  await load.further(60)
  for (let kill = 0; kill < 2; kill++) {
    const { writer } = await pids()
    process.kill(writer, 'SIGKILL')
    await load.further(60)
    expect((await pids()).writer).not.toBe(writer)
  }
  await eventually(() => expect(load.answered.some(({ status }) => status === 402)).toBe(true), { timeout: 90_000 })
  await load.stop()
  const good = load.answered.filter(({ status }) => status === 200)
  expect(load.failed).toEqual([])
  expect(load.answered.filter(({ status }) => status !== 200 && status !== 402)).toEqual([])
  const { more, used } = await untilRefused(origin)
  const spent = (good.length + more) * 35_000
  expect(spent).toBeLessThanOrEqual(10_000_000)
  // What was stored and not yet confirmed when the writer was killed is counted twice, never too little.
  expect(used).toBeGreaterThanOrEqual(spent)
  expect(await stop()).toBe(0)
  const stored = await storedIds(db)
  expect(load.answered.filter(({ traceId }) => !stored.has(traceId))).toEqual([])
  expect(await verified(db)).toContain(`valid: ${stored.size} records`)
}, 240_000)

// These two do nothing but wait for as long as a router waits for its writer: both at once.
it.concurrent('calls that a budget could refuse are answered 503 while the writer does not answer, and pass when it does', async () => {
  const { origin, stop, pids } = await service('[budget]\nper_day_usd = 5\n')
  const agent = fresh()
  expect((await ask(origin, agent)).status).toBe(200)
  const { writer } = await pids()
  process.kill(writer, 'SIGSTOP')
  const refused = await ask(origin, agent)
  expect(refused).toMatchObject({ status: 503, retryAfter: '1' })
  expect(JSON.parse(refused.text)).toMatchObject({
    type: 'error',
    error: { type: 'overloaded_error', message: expect.stringContaining('does not answer; try again') },
  })
  process.kill(writer, 'SIGCONT')
  await eventually(async () => expect((await ask(origin, agent)).status).toBe(200), { timeout: 30_000 })
  const metrics = await (await fetch(`${origin}/metrics`)).text()
  expect(metrics).not.toMatch(/^router_budget_refusals_total\{.*\} [1-9]/m)
  await agent.close()
  expect(await stop()).toBe(0)
}, 120_000)

it.concurrent('is not ready while the process that writes is stopped, with its connections open, and holds no answer back for ever', async () => {
  const { origin, stop, pids } = await service('', { ROUTER_RECEIPTS: 'durable' })
  const readiness = async () => (await fetch(`${origin}/readyz`)).json()
  const agent = fresh()
  expect((await ask(origin, agent)).status).toBe(200)
  const { writer } = await pids()
  process.kill(writer, 'SIGSTOP')
  // Its receipt is kept nowhere, so it is none of a call that went well.
  const unkept = ask(origin, agent)
  await eventually(
    async () =>
      expect(await readiness()).toMatchObject({ checks: { writer: 'the process that writes does not answer' } }),
    { timeout: 10_000 },
  )
  expect((await unkept).status).toBe(500)
  process.kill(writer, 'SIGCONT')
  await eventually(async () => expect(await readiness()).toMatchObject({ status: 'ready' }), { timeout: 10_000 })
  await agent.close()
  expect(await stop()).toBe(0)
}, 120_000)

it('a budget is exact over processes: what is refused and what is answered add up', async () => {
  const { origin, stop } = await service('[budget]\nper_day_usd = 0.003\n')
  const load = clients(origin, 12)
  await eventually(() => expect(load.answered.filter(({ status }) => status === 402).length).toBeGreaterThan(30), {
    timeout: 60_000,
  })
  await load.stop()
  const good = load.answered.filter(({ status }) => status === 200)
  let later = 0
  // What a call had reserved is given back behind its answer, so a refusal right after it may count that as well.
  await eventually(
    async () => {
      const { more, used } = await untilRefused(origin)
      later += more
      expect(used).toBeLessThanOrEqual(3_000_000)
      expect(used).toBe((good.length + later) * 35_000)
    },
    { timeout: 20_000 },
  )
  expect(await stop()).toBe(0)
}, 120_000)

it('all processes are replaced under load: no call fails, and a stream goes on to its end', async () => {
  const { origin, db, child, stop, pids, logs } = await service()
  const before = await pids()
  const load = clients(origin, 8)
  await load.further(20)
  const agents = [fresh(), fresh()]
  const streams = agents.map(agent => ask(origin, agent, streamed))
  await pause(300)
  child.kill('SIGUSR2')
  await eventually(() => expect(logs.join('\n')).toContain('all processes were replaced'), { timeout: 90_000 })
  await load.further(40)
  await load.stop()
  expect(load.failed).toEqual([])
  expect(load.answered.filter(({ status }) => status !== 200)).toEqual([])
  for (const { text } of await Promise.all(streams)) for (const word of wholeStream) expect(text).toContain(word)
  await Promise.all(agents.map(agent => agent.close()))
  const after = await pids()
  expect(after.serving).toHaveLength(2)
  expect([...after.serving, after.writer].filter(pid => [...before.serving, before.writer].includes(pid))).toEqual([])
  const page = await (await fetch(`${origin}/metrics`, { headers: { connection: 'close' } })).text()
  const counted = [...page.matchAll(/^router_requests_total\{[^}]*\} (\d+)$/gm)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  )
  expect(counted).toBe(load.answered.length + 2)
  expect(await stop()).toBe(0)
  expect(await verified(db)).toContain(`valid: ${counted} records`)
}, 240_000)

it('without the first process the others finish what they are answering, and end', async () => {
  const { origin, db, child, pids } = await service()
  const { serving, writer } = await pids()
  const agent = fresh()
  const going = ask(origin, agent, streamed)
  await pause(500)
  child.kill('SIGKILL')
  const { text } = await going
  for (const word of wholeStream) expect(text).toContain(word)
  await agent.close()
  await eventually(() => {
    for (const pid of [...serving, writer]) expect(() => process.kill(pid, 0), String(pid)).toThrow()
  })
  expect(await verified(db)).toContain('valid: 1 record\n')
}, 120_000)

it('none is left of a router whose first process is killed as it starts', async () => {
  for (const after of [0, 150, 300, 600, 1000]) {
    const child = spawn(
      process.execPath,
      ['router/cli/main.ts', 'serve', '--bind', '127.0.0.1:0', '--processes', '2'],
      {
        env: { ...programEnv, ROUTER_DB: join(folder, `${names++}.db`) },
        stdio: 'ignore',
      },
    )
    const started = new Set<number>()
    const look = async () => {
      const path = `/proc/${child.pid}/task/${child.pid}/children`
      const numbers = (await readFile(path, 'utf8').catch(() => '')).trim().split(/\s+/)
      for (const pid of numbers.filter(Boolean)) started.add(Number(pid))
      return started.size
    }
    await eventually(async () => expect(await look()).toBeGreaterThan(0))
    await pause(after)
    await look()
    child.kill('SIGKILL')
    await eventually(() => {
      for (const pid of started) expect(() => process.kill(pid, 0), `after ${after} ms: ${pid}`).toThrow()
    })
  }
}, 120_000)

it('says what to do where several processes cannot be', async () => {
  const refusal = (args: string[]) =>
    manyProcesses(args).then(
      () => 'it started',
      (error: Error) => error.message,
    )
  expect(await refusal(['--db', ':memory:'])).toContain('name a file in ROUTER_DB')
  const taken = createServer()
  await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
  const { port } = taken.address() as AddressInfo
  const said = await refusal(['--db', join(folder, 'taken.db'), '--bind', `127.0.0.1:${port}`])
  taken.close()
  expect(said).toContain(`cannot listen on 127.0.0.1:${port}: another program uses this port`)
}, 60_000)
