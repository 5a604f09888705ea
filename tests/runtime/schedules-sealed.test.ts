import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { Fire, Schedule } from '../../shared/wire/runtime/schedule.ts'
import { type Api, api } from './api.ts'
import { type NodeFixture, nodeFixture, until } from './node-fixture.ts'

const POOL = { 'waybill.pool': 'default' }
const YEARLY = '0 0 1 1 *'
const SECONDLY = '* * * * * *'

let folder: string
let control: Api
let nodes: NodeFixture[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-sealed-schedules-'))
  // Without a master key, what the control plane can read stands readable in its files.
  control = await api({ url: join(folder, 'control.db') })
  nodes = []
})
afterEach(async () => {
  for (const node of nodes) await node.close()
  await control.close()
  await rm(folder, { recursive: true, force: true })
})

async function node(options: Parameters<typeof nodeFixture>[2] = {}): Promise<NodeFixture> {
  const made = await nodeFixture(control, folder, options)
  nodes.push(made)
  await until(async () => {
    const { status } = await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${made.identity.nodeId}`)
    return status === 'online'
  }, 'the node is online')
  return made
}

const agent = (manifest: object = {}, labels: object = POOL) =>
  control.json(201, 'POST', '/v1/agents', { name: 'clerk', manifest, labels })

const add = (input: object, more: object = {}) =>
  control.json<Schedule>(201, 'POST', '/v1/schedules', {
    agentName: 'clerk',
    cronExpr: YEARLY,
    config: { input },
    ...more,
  })

const read = (id: string) => control.json<Schedule>(200, 'GET', `/v1/schedules/${id}`)
const put = (id: string, body: object) => control.json<Schedule>(200, 'PUT', `/v1/schedules/${id}`, body)
const runNow = (id: string) => control.json<Run>(201, 'POST', `/v1/schedules/${id}/run`, {})

async function ended(id: string): Promise<Run> {
  await until(async () => {
    const run = await control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
    return isTerminal(run.status)
  }, `run ${id} ends`)
  return control.json<Run>(200, 'GET', `/v1/runs/${id}`)
}

async function fired(id: string): Promise<Run> {
  const fire = await until(async () => {
    const fires = await control.json<Fire[]>(200, 'GET', `/v1/schedules/${id}/fires`)
    return fires.find(({ runId }) => runId !== undefined)
  }, `schedule ${id} fires`)
  return ended(fire.runId!)
}

/** Everything that stands in the store of the control plane, its log of writes included. */
async function stored(): Promise<string> {
  const names = (await readdir(folder)).filter(name => name.startsWith('control.db'))
  expect(names).toContain('control.db-wal')
  return (await Promise.all(names.map(name => readFile(join(folder, name), 'latin1')))).join('')
}

describe('the input of a schedule whose agent belongs to a pool', () => {
  it('is read on the nodes of the pool alone', async () => {
    await node()
    await agent()
    const made = await add({ prompt: 'canary-first' })
    expect(made).toMatchObject({ config: {}, dataAvailable: false })
    expect(made.config).toEqual({})
    expect((await runNow(made.id)).input).toBeUndefined()
    const first = await fired((await put(made.id, { cronExpr: SECONDLY })).id)
    expect(first).toMatchObject({
      status: 'succeeded',
      scheduleId: made.id,
      input: { prompt: 'canary-first' },
      output: { result: expect.stringContaining('canary-first') },
    })
    const changed = await put(made.id, { cronExpr: YEARLY, config: { input: { prompt: 'canary-second' } } })
    expect(changed.config).toEqual({})
    expect((await ended((await runNow(made.id)).id)).input).toEqual({ prompt: 'canary-second' })
    expect((await stored()).match(/canary-(?:first|second)/)).toBeNull()
    await control.db.execute('pragma wal_checkpoint(truncate)')
    expect((await stored()).match(/canary-(?:first|second)/)).toBeNull()
  })

  it('stays as it is when what was read is sent back, and when a change leaves it out', async () => {
    await node()
    await agent()
    const { id } = await add({ prompt: 'canary-kept' })
    for (const name of ['one', 'two']) {
      const back = await put(id, { ...(await read(id)), name })
      expect(back).toEqual({ ...(await read(id)), name, config: {}, dataAvailable: false })
    }
    await put(id, { config: {} })
    await control.json(200, 'POST', `/v1/schedules/${id}/pause`, {})
    await control.json(200, 'POST', `/v1/schedules/${id}/resume`, {})
    expect((await ended((await runNow(id)).id)).input).toEqual({ prompt: 'canary-kept' })
    const [listed] = await control.json<Schedule[]>(200, 'GET', '/v1/schedules')
    expect(listed).toEqual(await read(id))
  })

  it('is redacted before it is sealed', async () => {
    await node()
    await agent({ privacy: { redact: ['email'] } })
    const { id } = await add({ prompt: 'write to ann@example.org' })
    const { input } = await ended((await runNow(id)).id)
    expect(input?.prompt).toMatch(/^write to /)
    expect(input?.prompt).not.toContain('ann@example.org')
  })

  it('is sealed when it fires, where it stood readable before', async () => {
    await agent({}, {})
    const fires = await add({ prompt: 'canary-early' }, { cronExpr: SECONDLY, enabled: false })
    const changes = await add({ prompt: 'canary-early' })
    expect((await stored()).includes('canary-early')).toBe(true)
    expect(fires).toMatchObject({ config: { input: { prompt: 'canary-early' } } })
    expect(fires.dataAvailable).toBeUndefined()
    await node()
    await control.json(200, 'PATCH', '/v1/agents/clerk', { labels: POOL })
    expect(await put(changes.id, { name: 'x' })).toMatchObject({ config: {}, dataAvailable: false })
    // As a schedule that was switched on before its agent moved.
    await control.db.execute({
      sql: 'update schedules set enabled = 1, due_ms = ? where id = ?',
      args: [Date.now(), fires.id],
    })
    expect(await fired(fires.id)).toMatchObject({ status: 'succeeded', input: { prompt: 'canary-early' } })
    expect(await read(fires.id)).toMatchObject({ config: {}, dataAvailable: false })
    expect((await ended((await runNow(fires.id)).id)).input).toEqual({ prompt: 'canary-early' })
    // Pages of what stood there before stay in the file until they are used again; no row has it.
    await control.db.execute('vacuum')
    await control.db.execute('pragma wal_checkpoint(truncate)')
    expect((await stored()).includes('canary-early')).toBe(false)
  })

  it('is never left out: where its nodes are not asked, the run ends before it begins, and the input is sent anew', async () => {
    await node()
    await agent()
    const { id } = await add({ prompt: 'canary-moved' })
    await control.json(201, 'POST', '/v1/agents', { name: 'other', manifest: {} })
    const refused = await control.call('PUT', `/v1/schedules/${id}`, { agentName: 'other' })
    expect([refused.status, await refused.json()]).toEqual([
      400,
      expect.objectContaining({ error: expect.stringContaining('send config.input as well') }),
    ])
    await control.json(200, 'PATCH', '/v1/agents/clerk', { labels: { 'waybill.pool': 'local' } })
    const run = await ended((await runNow(id)).id)
    expect(run).toMatchObject({ status: 'failed', tokensIn: 0, error: { code: 'isolation_unavailable' } })
    expect(run.error?.message).toContain('sealed to pool default')
    const again = await control.call('POST', `/v1/runs/${run.id}/retry`)
    expect([again.status, await again.json()]).toEqual([
      409,
      expect.objectContaining({ code: 'run_terminal', error: expect.stringContaining('start a new run') }),
    ])
    const moved = await put(id, { agentName: 'other', config: { input: { prompt: 'here' } } })
    expect(moved.config).toEqual({ input: { prompt: 'here' } })
    expect((await ended((await runNow(id)).id)).input).toEqual({ prompt: 'here' })
  })
})
