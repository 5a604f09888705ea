import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { ApiKeyCreated } from '../../shared/wire/runtime/auth.ts'
import { runtimeEndpoints } from '../../shared/wire/runtime/endpoints.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run, Step } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { answer } from '../upstream/scripted.ts'
import { api, KEY } from './api.ts'
import { CANARY, type ProviderFixture, providerFixture } from './provider-fixture.ts'

/** What only its owner may ever read again. It is in every text that a run can be given. */
const PROMPT = 'prompt-canary-9d1f6c3ab27e4058'
const BIG = `${PROMPT} ${'0123456789'.repeat(30_000)}`
const masterKey = new Uint8Array(32).fill(9)

let fixture: ProviderFixture
let folder: string
let path: string
let owner: ApiKeyCreated
let other: ApiKeyCreated
const ids = { run: '', big: '', fork: '', session: '', schedule: '', asked: '' }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-canary-'))
  path = join(folder, 'runtime.db')
  fixture = await providerFixture({ url: path, masterKey })
  const { json, remote, events } = fixture
  const ended = async (id: string) => (await events(`/v1/runs/${id}/events`)).all()
  owner = await json<ApiKeyCreated>(201, 'POST', '/v1/api-keys', { name: 'owner' })
  const tenant = await json<{ id: string }>(201, 'POST', '/v1/tenants', { name: 'other' })
  other = await json<ApiKeyCreated>(201, 'POST', `/v1/tenants/${tenant.id}/api-keys`, { name: 'other' })
  await fixture.configure('anthropic')
  const manifest = { model: 'demo/echo', tools: ['wait_signal', 'ask_human'] }
  await json(201, 'POST', '/v1/agents', { name: 'echo', manifest })
  await json(201, 'POST', '/v1/agents', { name: 'vendor', manifest: { model: 'anthropic/claude-haiku-4-5' } })
  const started = async (agentName: string, prompt: string) => {
    const body = { agentName, input: { prompt } }
    const made = await fixture.call('POST', '/v1/runs', body, { 'idempotency-key': `key-${Math.random()}` })
    return ((await made.json()) as Run).id
  }

  ids.run = await started('echo', `/call wait_signal {"name":"go"}\n${PROMPT}`)
  await json(204, 'POST', `/v1/runs/${ids.run}/signals/go`, { value: PROMPT })
  await ended(ids.run)
  ids.big = await started('echo', BIG)
  await ended(ids.big)
  ids.fork = (await json<Run>(201, 'POST', `/v1/runs/${ids.big}/fork`, { fromStepId: 'model-1' })).id
  await ended(ids.fork)
  ids.asked = await started('echo', `/call ask_human {"prompt":"${PROMPT}"}`)
  for (;;) {
    const [asked] = await json<Approval[]>(200, 'GET', `/v1/runs/${ids.asked}/approvals`)
    if (asked && (await json<Run>(200, 'GET', `/v1/runs/${ids.asked}`)).status === 'waiting') {
      await json(200, 'POST', `/v1/approvals/${asked.id}/approve`, { output: PROMPT, comment: PROMPT })
      break
    }
    await new Promise(resolve => setTimeout(resolve, 2))
  }
  await ended(ids.asked)
  // A provider that repeats in its refusal what it was sent, key and prompt.
  remote.always(answer(400, JSON.stringify({ error: { message: `bad: ${PROMPT} ${CANARY}` } })))
  await ended(await started('vendor', PROMPT))
  const session = await json<Session>(201, 'POST', '/v1/sessions', {
    agentName: 'echo',
    environment: { SECRET: PROMPT },
  })
  ids.session = session.id
  const data = Buffer.from(PROMPT).toString('base64')
  const message = { content: PROMPT, systemHint: PROMPT, turnHint: PROMPT }
  const attachments = [{ name: 'a.txt', mediaType: 'text/plain', data }]
  await json(200, 'POST', `/v1/sessions/${ids.session}/messages`, { ...message, attachments })
  const schedule = await json<{ id: string }>(201, 'POST', '/v1/schedules', {
    agentName: 'echo',
    cronExpr: '0 0 1 1 *',
    config: { input: { prompt: PROMPT } },
  })
  ids.schedule = schedule.id
  await ended((await json<Run>(201, 'POST', `/v1/schedules/${ids.schedule}/run`, {})).id)
})
afterAll(async () => {
  await fixture.close()
  await rm(folder, { recursive: true, force: true })
})

describe('a canary prompt and a canary key', () => {
  it('stand in clear in no file of the store, the log of writes included', async () => {
    const files = await readdir(folder)
    expect(files).toContain('runtime.db-wal')
    let bytesRead = 0
    for (const file of files) {
      const bytes = await readFile(join(folder, file))
      bytesRead += bytes.length
      for (const canary of [PROMPT, CANARY, owner.rawKey, other.rawKey, KEY]) {
        // As it is, and as the two encodings in which a text could hide from this search.
        for (const form of [
          canary,
          Buffer.from(canary).toString('hex'),
          Buffer.from(canary).toString('base64').slice(0, 38),
        ]) {
          expect([file, form, bytes.includes(form)]).toEqual([file, form, false])
        }
      }
    }
    expect(bytesRead).toBeGreaterThan(300_000)
  })

  it('are in no line of the log, not even where things go wrong', async () => {
    const broken = await fixture.json<Run>(201, 'POST', '/v1/runs', { agentName: 'echo', input: { prompt: PROMPT } })
    await (await fixture.events(`/v1/runs/${broken.id}/events`)).all()
    await fixture.db.execute({
      sql: `update events set body = substr(body, 1, 60) where run_id = ?`,
      args: [broken.id],
    })
    const refused = await fixture.call('GET', `/v1/runs/${broken.id}/journal`)
    expect([refused.status, await refused.json()]).toMatchObject([
      500,
      { error: expect.stringContaining('does not open') },
    ])
    await fixture.call('POST', '/v1/runs', { agentName: 'echo', input: PROMPT })
    expect(fixture.lines.length).toBeGreaterThan(0)
    for (const canary of [PROMPT, CANARY, owner.rawKey, other.rawKey, KEY]) {
      expect(fixture.lines.filter(line => line.includes(canary))).toEqual([])
    }
  })

  it('are in no answer but those in which an owner reads the run itself', async () => {
    const { call, json } = fixture
    const gets = runtimeEndpoints.filter(({ method, id }) => method === 'GET' && id !== 'streamSessionEvents')
    const known: Record<string, string> = { '/v1/sessions/': ids.session, '/v1/schedules/': ids.schedule }
    const reading = new Set([
      ...['listRuns', 'getRun', 'listApprovals', 'listRunApprovals', 'exportRunJournal', 'streamRunEvents'],
      ...['listSessions', 'getSession', 'listSchedules', 'getSchedule', 'listRunSteps'],
    ])
    let read = 0
    for (const { path, id } of gets) {
      const of = Object.entries(known).find(([prefix]) => path.startsWith(prefix))?.[1] ?? ids.asked
      const answer = await call('GET', path.replace('{name}', 'echo').replaceAll(/\{\w+\}/g, of))
      const text = await answer.text()
      expect([id, text.includes(CANARY), text.includes(owner.rawKey)]).toEqual([id, false, false])
      if (text.includes(PROMPT)) {
        expect(reading).toContain(id)
        read++
      }
      const theirs = await call('GET', path.replace('{name}', 'echo').replaceAll(/\{\w+\}/g, of), undefined, {
        authorization: `Bearer ${other.rawKey}`,
      })
      expect([id, (await theirs.text()).includes(PROMPT)]).toEqual([id, false])
    }
    // Or this test would prove nothing.
    expect(read).toBeGreaterThan(6)
    expect(JSON.stringify(await json(200, 'GET', '/v1/audit-log'))).not.toContain(PROMPT)
  })

  it('are read again by their owner: journal, steps, receipt, messages, a fork with a large output', async () => {
    const { json } = fixture
    for (const id of [ids.run, ids.big, ids.fork, ids.asked]) {
      const run = await json<Run>(200, 'GET', `/v1/runs/${id}`)
      expect(run.status).toBe('succeeded')
      expect(JSON.stringify([run.input, run.output])).toContain(PROMPT)
      const receipt = await json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
      const journal = await json<object>(200, 'GET', `/v1/runs/${id}/journal`)
      expect(await json(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal })).toMatchObject({
        valid: true,
        checks: { signature: 'ok', journal: 'ok', record: 'ok' },
      })
      expect((await json<Step[]>(200, 'GET', `/v1/runs/${id}/steps`)).length).toBeGreaterThan(0)
    }
    const session = await json<Session>(200, 'GET', `/v1/sessions/${ids.session}`)
    expect(session.messages).toMatchObject([{ role: 'user', content: PROMPT }, { role: 'assistant' }])
    expect(session.environment).toEqual({ SECRET: PROMPT })
  })

  it('stay with the store: another master key, or none, does not open it', async () => {
    await expect(api({ url: path, masterKey: new Uint8Array(32).fill(1) })).rejects.toThrow(
      /^the master key is not the one this store was sealed under/,
    )
    await expect(api({ url: path })).rejects.toThrow(/^the run data of this store is sealed: give the master key/)
    const again = await api({ url: path, masterKey })
    expect((await again.json<Run>(200, 'GET', `/v1/runs/${ids.run}`)).input).toEqual({
      prompt: `/call wait_signal {"name":"go"}\n${PROMPT}`,
    })
    await again.close()
  })
})

it('rows of a store from before its data was sealed are still read', async () => {
  const older = join(folder, 'older.db')
  const clear = await api({ url: older, masterKey: undefined })
  await clear.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  const made = await clear.json<Run>(201, 'POST', '/v1/runs', { agentName: 'echo', input: { prompt: PROMPT } })
  await (await clear.events(`/v1/runs/${made.id}/events`)).all()
  await clear.close()
  const files = await Promise.all([older, `${older}-wal`].map(file => readFile(file).catch(() => Buffer.alloc(0))))
  expect(files.some(bytes => bytes.includes(PROMPT))).toBe(true)
  const now = await api({ url: older, masterKey })
  expect((await now.json<Run>(200, 'GET', `/v1/runs/${made.id}`)).input).toEqual({ prompt: PROMPT })
  const receipt = await now.json<Receipt>(200, 'GET', `/v1/runs/${made.id}/receipt`)
  expect(await now.json(200, 'POST', '/v1/runs/receipts/verify', receipt)).toMatchObject({ valid: true })
  await now.close()
  const db = await openDb(older)
  expect(Number((await db.execute('select count(*) as n from data_keys')).rows[0]?.n)).toBe(1)
  db.close()
})
