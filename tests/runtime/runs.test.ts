import { afterEach, describe, expect, it } from 'vitest'
import { StepFailure } from '../../runtime/execution/failure.ts'
import type { FoundModel } from '../../runtime/execution/models/model.ts'
import { checkJournal } from '../../shared/sign/testing/check-journal.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Run, Step } from '../../shared/wire/runtime/run.ts'
import { type Api, api } from './api.ts'
import { sseReader } from './sse.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function started(manifest: object = { tools: ['wait', 'wait_signal', 'ask_human'] }): Promise<Api> {
  const made = await api()
  open.push(made)
  await made.json(201, 'POST', '/v1/agents', { name: 'worker', manifest })
  return made
}

const run = (prompt: string, more: object = {}) => ({ agentName: 'worker', input: { prompt }, ...more })

async function ended({ events, json }: Api, id: string): Promise<Run> {
  await (await events(`/v1/runs/${id}/events`)).all()
  return json<Run>(200, 'GET', `/v1/runs/${id}`)
}

async function waiting({ json }: Api, id: string): Promise<Approval> {
  for (;;) {
    const found = await json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`)
    const pending = found.find(one => one.status === 'pending')
    const { status } = await json<Run>(200, 'GET', `/v1/runs/${id}`)
    if (pending && status === 'waiting') return pending
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

describe('POST /v1/runs', () => {
  it('answers a queued run with its counters at zero, and 404 and 400 that name what is wrong', async () => {
    const { json } = await started()
    expect(await json<Run>(201, 'POST', '/v1/runs', run('hi', { labels: { team: 'a' } }))).toMatchObject({
      status: 'queued',
      tokensIn: 0,
      tokensOut: 0,
      costUsd: 0,
      labels: { team: 'a' },
      trigger: { kind: 'api' },
      input: { prompt: 'hi' },
    })
    expect(await json(404, 'POST', '/v1/runs', { agentName: 'nobody' })).toMatchObject({
      error: 'agent not found: nobody',
    })
    expect(await json(400, 'POST', '/v1/runs', {})).toMatchObject({ error: expect.stringContaining('agentName') })
    expect(await json(400, 'POST', '/v1/runs', run('x', { isolation: 'runc' }))).toMatchObject({
      error: expect.stringContaining('isolation'),
    })
    expect(await json<Run>(201, 'POST', '/v1/runs', { agent_name: 'worker' })).toMatchObject({ input: {} })
  })

  it('makes one run of fifty equal calls with one key', async () => {
    const { call, json } = await started()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => call('POST', '/v1/runs', run('once'), { 'idempotency-key': 'k1' })),
    )
    const statuses = answers.map(answer => answer.status)
    expect(statuses.filter(status => status === 201).length).toBeGreaterThan(0)
    expect(statuses.every(status => status === 201 || status === 409)).toBe(true)
    expect(await json<Run[]>(200, 'GET', '/v1/runs')).toHaveLength(1)
    const again = await call('POST', '/v1/runs', run('once'), { 'idempotency-key': 'k1' })
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
    expect((await call('POST', '/v1/runs', run('other'), { 'idempotency-key': 'k1' })).status).toBe(409)
  })

  it('keeps a run on the version it was made with', async () => {
    const it = await started()
    const first = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait_signal {"name":"go"}'))
    await it.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { tools: [] } })
    const second = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait_signal {"name":"go"}'))
    expect(second.agentVersionId).not.toBe(first.agentVersionId)
    await it.json(204, 'POST', `/v1/runs/${first.id}/signals/go`, { value: 7 })
    expect(await ended(it, first.id)).toMatchObject({ output: { result: expect.stringContaining('"value":7') } })
    expect(await ended(it, second.id)).toMatchObject({ output: { result: expect.stringContaining('no tool called') } })
  })
})

describe('GET /v1/runs', () => {
  it('lists newest first, in pages, by filter, as a bare array', async () => {
    const { call, json } = await started()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push((await json<Run>(201, 'POST', '/v1/runs', run(`${n}`))).id)
    const page = await call('GET', '/v1/runs?limit=2')
    const next = /<(.*)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1] ?? ''
    const listed = [...((await page.json()) as Run[]), ...(await json<Run[]>(200, 'GET', next))].map(one => one.id)
    expect(listed).toEqual(ids.toReversed().slice(0, 4))
    expect(await json<Run[]>(200, 'GET', '/v1/runs?agentName=nobody')).toEqual([])
    expect(await json<Run[]>(200, 'GET', '/v1/runs?status=undefined&agent=worker')).toHaveLength(5)
    for (const bad of ['limit=0', 'limit=abc', 'cursor=zzz', 'status=done']) {
      expect((await call('GET', `/v1/runs?${bad}`)).status, bad).toBe(400)
    }
  })

  it('answers 404 for an unknown run and a summary without its texts', async () => {
    const { json } = await started()
    const { id } = await json<Run>(201, 'POST', '/v1/runs', run('secret text'))
    expect(JSON.stringify(await json(200, 'GET', `/v1/runs/${id}?fields=summary`))).not.toContain('secret text')
    expect(await json(404, 'GET', '/v1/runs/nope')).toMatchObject({ error: 'run not found: nope' })
  })
})

describe('the stream of a run', () => {
  it('gives a late subscriber everything and ends, and a returning one what it has not seen', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call*3 wait {"seconds":0}'))
    const live = await (await it.events(`/v1/runs/${id}/events`)).all()
    expect(live.map(event => Number(event.id))).toEqual(Array.from({ length: 14 }, (_, at) => at + 1))
    expect(await (await it.events(`/v1/runs/${id}/events`)).all()).toEqual(live)
    const rest = await (await it.events(`/v1/runs/${id}/events`, { 'last-event-id': '10' })).all()
    expect(rest).toEqual(live.slice(10))
    expect(await (await it.events(`/v1/runs/${id}/events?from_seq=13`)).all()).toEqual(live.slice(12))
    // The default of clients that count from nothing.
    expect(await (await it.events(`/v1/runs/${id}/events?from_seq=0&live=true`)).all()).toEqual(live)
    const { events } = await it.json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
    for (const [at, event] of live.entries()) expect(event.data).toMatchObject(events[at] as object)
    const ndjson = await it.call('GET', `/v1/runs/${id}/journal`, undefined, { accept: 'application/x-ndjson' })
    expect(
      (await ndjson.text())
        .trim()
        .split('\n')
        .map(line => JSON.parse(line)),
    ).toEqual(events)
  })

  it('tells whoever comes back after the end to stay away, and only those', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call*3 wait {"seconds":0}'))
    const from = (last: string) => it.call('GET', `/v1/runs/${id}/events`, undefined, { 'last-event-id': last })
    const during = await from('0')
    expect(during.status).toBe(200)
    expect((await sseReader(during.body!).all()).length).toBe(14)
    for (const last of ['14', '15', '999']) {
      const over = await from(last)
      expect([over.status, await over.text()]).toEqual([204, ''])
    }
    for (const last of ['', 'x', '13']) expect((await from(last)).status).toBe(200)
  })

  it('follows another process that owns the run, and closes after the replay when it is asked to', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait_signal {"name":"go"}'))
    const stream = await it.events(`/v1/runs/${id}/events`)
    for (let seq = 1; seq <= 3; seq++) expect((await stream.next())?.id).toBe(String(seq))
    expect(await (await it.events(`/v1/runs/${id}/events?live=false`)).all()).toHaveLength(3)
    await it.json(204, 'POST', `/v1/runs/${id}/signals/go`, {})
    expect((await stream.all()).map(event => event.id)).toEqual(['4', '5', '6'])
  })

  it('leaves no timer and no watcher behind', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait_signal {"name":"go"}'))
    const timers = () => process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length
    const before = timers()
    const streams = await Promise.all(Array.from({ length: 20 }, () => it.events(`/v1/runs/${id}/events`)))
    for (const stream of streams) await stream.next()
    expect(timers()).toBeGreaterThan(before + 15)
    for (const stream of streams) await stream.stop()
    // Not by `vi.waitFor`, which has two timers of its own from its second look on.
    for (let look = 0; look < 100 && timers() > before; look++) await new Promise(resolve => setTimeout(resolve, 100))
    expect(timers()).toBeLessThanOrEqual(before)
  })
})

describe('an end, a fork, a retry', () => {
  it('cancels once; what follows is a conflict', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait_signal {"name":"go"}'))
    expect(await it.json<Run>(200, 'POST', `/v1/runs/${id}/cancel`, { reason: 'enough' })).toMatchObject({
      status: 'cancelled',
      cancelReason: 'enough',
      output: {},
    })
    expect(await it.json(409, 'POST', `/v1/runs/${id}/cancel`, {})).toMatchObject({ code: 'run_terminal' })
    expect(await it.json(409, 'POST', `/v1/runs/${id}/signals/go`, {})).toMatchObject({ code: 'run_terminal' })
    const journal = await it.json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
    expect(journal.sealed).toBe(true)
    expect(checkJournal(id, journal.events)).toMatchObject({ ok: true, head: journal.head })
  })

  it('forks and retries no run of an agent that is deleted, also where another one has its name', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait {"seconds":0}'))
    await ended(it, id)
    const other = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait_signal {"name":"go"}'))
    expect((await it.call('DELETE', '/v1/agents/worker')).status).toBe(204)
    expect((await ended(it, other.id)).error?.code).toBe('agent_deleted')
    for (const remade of [false, true]) {
      if (remade) await it.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: {} })
      const none = { error: 'agent not found: worker' }
      expect(await it.json(404, 'POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-2' })).toMatchObject(none)
      expect(await it.json(404, 'POST', `/v1/runs/${other.id}/retry`, {})).toMatchObject(none)
    }
  })

  it('forks from a step: earlier ones are copies that cost nothing', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call*2 wait {"seconds":0}'))
    const source = await ended(it, id)
    const fork = await it.json<Run>(201, 'POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-2' })
    const forked = await ended(it, fork.id)
    expect(forked).toMatchObject({ status: 'succeeded', forkedFrom: { runId: id, stepId: 'model-2' } })
    const steps = await it.json<Step[]>(200, 'GET', `/v1/runs/${fork.id}/steps`)
    expect(steps.map(step => [step.stepId, step.copied])).toEqual([
      ...[
        ['model-1', true],
        ['timer-1-1', true],
        ['model-2', false],
        ['timer-2-1', false],
        ['model-3', false],
      ],
    ])
    expect(forked.tokensIn).toBeLessThan(source.tokensIn)
    expect(await it.json(404, 'POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-9' })).toMatchObject({
      error: 'step not found: model-9',
    })
    expect((await it.call('POST', `/v1/runs/${id}/retry`, {})).status).toBe(409)
  })

  it('retries a run whose steps are all done from the one that it failed at, and does none of the others again', async () => {
    const outputSchema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
    const it = await started({ tools: ['wait'], outputSchema, outputRepairs: 0 })
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait {"seconds":0}'))
    expect((await ended(it, id)).error).toMatchObject({ code: 'output_invalid', stepId: 'model-2' })
    const again = await it.json<Run>(201, 'POST', `/v1/runs/${id}/retry`, {})
    expect((await ended(it, again.id)).forkedFrom).toEqual({ runId: id, stepId: 'model-2' })
    const steps = await it.json<Step[]>(200, 'GET', `/v1/runs/${again.id}/steps`)
    expect(steps.map(step => [step.stepId, step.copied])).toEqual([
      ...[
        ['model-1', true],
        ['timer-1-1', true],
        ['model-2', false],
      ],
    ])
  })

  it('retries a run that met its limit with all that it has done', async () => {
    const it = await started({ tools: ['wait'], limits: { maxTurns: 2 } })
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call*3 wait {"seconds":0}'))
    expect((await ended(it, id)).error?.code).toBe('limit_exceeded')
    const again = await it.json<Run>(201, 'POST', `/v1/runs/${id}/retry`, {})
    expect((await ended(it, again.id)).error?.code).toBe('limit_exceeded')
    const steps = await it.json<Step[]>(200, 'GET', `/v1/runs/${again.id}/steps`)
    expect(steps.map(({ stepId, copied }) => `${stepId} ${copied}`)).toEqual([
      ...['model-1 true', 'timer-1-1 true', 'model-2 true', 'timer-2-1 true'],
    ])
  })

  it('retries a run with a failure that its model was told of, and makes no call again that came after', async () => {
    const asked: string[] = []
    const calls = [
      { id: 'c1', name: 'http_request', arguments: { url: 'https://example.com/' } },
      { id: 'c2', name: 'wait', arguments: { seconds: 0 } },
    ]
    let isAway = true
    const model: FoundModel = {
      id: 'test/m',
      async ask({ messages }) {
        const turn = messages.filter(({ role }) => role === 'assistant').length
        if (turn === calls.length && isAway) throw new StepFailure('model_error', 'the provider is away')
        asked.push(messages.map(message => (message.role === 'tool' ? message.results[0]!.content : '')).join(''))
        const toolCalls = calls.slice(turn, turn + 1)
        const [stop, text] = toolCalls.length > 0 ? (['tools', ''] as const) : (['end', 'done'] as const)
        const spent = { tokensIn: 1, tokensOut: 1, costNano: 0 }
        return { text, stop, toolCalls, provider: 'test', model: 'test/m', spent }
      },
    }
    const it = await api({ models: { find: async () => model } })
    open.push(it)
    const manifest = { tools: ['http_request', 'wait'] }
    await it.json(201, 'POST', '/v1/agents', { name: 'worker', manifest })
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('go'))
    expect((await ended(it, id)).error).toMatchObject({ code: 'model_error', stepId: 'model-3' })
    const failure = asked[1]
    expect(failure).toMatch(/./)
    isAway = false
    const again = await it.json<Run>(201, 'POST', `/v1/runs/${id}/retry`, {})
    expect(await ended(it, again.id)).toMatchObject({ status: 'succeeded', forkedFrom: { stepId: 'model-3' } })
    const steps = await it.json<Step[]>(200, 'GET', `/v1/runs/${again.id}/steps`)
    expect(steps.map(({ stepId, status, copied }) => `${stepId} ${status} ${copied}`)).toEqual([
      ...['model-1 completed true', 'tool-1-1 failed true', 'model-2 completed true', 'timer-2-1 completed true'],
      'model-3 completed false',
    ])
    expect(asked).toHaveLength(3)
    expect(asked[2]).toContain(failure)
    const { events, head } = await it.json<JournalExport>(200, 'GET', `/v1/runs/${again.id}/journal`)
    expect(checkJournal(again.id, events)).toMatchObject({ ok: true, head })
  })

  it('deletes only what has ended, and an agent’s open runs end with it', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait_signal {"name":"go"}'))
    expect(await it.json(409, 'DELETE', `/v1/runs/${id}`)).toMatchObject({ code: 'run_not_terminal' })
    await it.json(204, 'DELETE', '/v1/agents/worker')
    await it.json(404, 'POST', '/v1/runs', run('late'))
    await it.json(200, 'GET', `/v1/runs/${id}`)
    const message = 'the agent was deleted: publish it again, or another one, and start a new run'
    expect(await ended(it, id)).toMatchObject({ status: 'failed', error: { code: 'agent_deleted', message } })
    await it.json(204, 'DELETE', `/v1/runs/${id}`)
    await it.json(404, 'GET', `/v1/runs/${id}`)
  })
})

describe('approvals', () => {
  it('are decided once, and a rejection ends the run with its comment', async () => {
    const it = await started({ tools: ['wait'], approvals: { tools: ['wait'] } })
    const made = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait {"seconds":0}'))
    const approval = await waiting(it, made.id)
    expect(approval).toMatchObject({ reason: 'approval_required', action: { name: 'wait', arguments: { seconds: 0 } } })
    expect(await it.json<Approval[]>(200, 'GET', '/v1/approvals?status=pending')).toHaveLength(1)
    await it.json(200, 'POST', `/v1/approvals/${approval.id}/approve`, { comment: 'fine' })
    expect(await it.json(409, 'POST', `/v1/runs/${made.id}/approvals/${approval.id}/reject`, {})).toMatchObject({
      code: 'approval_decided',
    })
    expect(await ended(it, made.id)).toMatchObject({ status: 'succeeded' })
    const other = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait {"seconds":0}'))
    const refused = await waiting(it, other.id)
    await it.json(200, 'POST', `/v1/runs/${other.id}/approvals/${refused.id}/reject`, { comment: 'not today' })
    expect(await ended(it, other.id)).toMatchObject({
      status: 'failed',
      error: { code: 'approval_rejected', message: 'not today' },
    })
  })

  it('are each for one call: a fork that makes it again asks again, and one behind it does not', async () => {
    const it = await started({ tools: ['wait'], approvals: { tools: ['wait'] } })
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call wait {"seconds":0}'))
    const approval = await waiting(it, id)
    await it.json(200, 'POST', `/v1/approvals/${approval.id}/approve`, {})
    expect((await ended(it, id)).status).toBe('succeeded')
    const again = await it.json<Run>(201, 'POST', `/v1/runs/${id}/fork`, { fromStepId: 'timer-1-1' })
    expect(await waiting(it, again.id)).toMatchObject({ stepId: 'approval-1-1', action: approval.action })
    await it.json(200, 'POST', `/v1/runs/${again.id}/cancel`, {})
    const behind = await it.json<Run>(201, 'POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-2' })
    expect((await ended(it, behind.id)).status).toBe('succeeded')
  })

  it('a question is answered by what the approval says', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('/call ask_human {"prompt":"how many?"}'))
    const question = await waiting(it, id)
    await it.json(200, 'POST', `/v1/approvals/${question.id}/approve`, { output: 12 })
    expect(await ended(it, id)).toMatchObject({ output: { result: expect.stringContaining('12') } })
  })
})

describe('a restart', () => {
  it('goes on with runs that waited, and serves what had ended', async () => {
    const { mkdtemp, rm } = await import('node:fs/promises')
    const folder = await mkdtemp('/tmp/waybill-restart-')
    const url = `${folder}/x.db`
    const first = await api({ url })
    await first.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { tools: ['wait_signal'] } })
    const made = await first.json<Run>(201, 'POST', '/v1/runs', run('/call wait_signal {"name":"go"}'))
    await (await first.events(`/v1/runs/${made.id}/events`)).next()
    await first.close()
    const second = await api({ url })
    open.push(second)
    await second.json(204, 'POST', `/v1/runs/${made.id}/signals/go`, { value: 'after' })
    expect(await ended(second, made.id)).toMatchObject({ status: 'succeeded' })
    await rm(folder, { recursive: true, force: true })
  })

  it('refuses new work while it stops', async () => {
    const it = await started()
    it.runtime.drain()
    const answer = await it.call('POST', '/v1/runs', run('late'))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
  })
})

describe('keys', () => {
  it('open what their scopes name, and nothing of another tenant', async () => {
    const it = await started()
    const { id } = await it.json<Run>(201, 'POST', '/v1/runs', run('mine'))
    const reader = await it.json<{ rawKey: string }>(201, 'POST', '/v1/api-keys', { name: 'r', scopes: ['runs:read'] })
    const as = (rawKey: string) => ({ authorization: `Bearer ${rawKey}` })
    expect((await it.call('GET', `/v1/runs/${id}`, undefined, as(reader.rawKey))).status).toBe(200)
    const refused = await it.call('POST', '/v1/runs', run('x'), as(reader.rawKey))
    expect([refused.status, await refused.json()]).toEqual([
      ...[403, { error: expect.stringContaining('runs:execute'), code: 'forbidden_scope' }],
    ])
    const tenant = await it.json<{ id: string }>(201, 'POST', '/v1/tenants', { name: 'other' })
    const other = await it.json<{ rawKey: string }>(201, 'POST', `/v1/tenants/${tenant.id}/api-keys`, { name: 'o' })
    expect((await it.call('GET', `/v1/runs/${id}`, undefined, as(other.rawKey))).status).toBe(403)
    expect((await it.call('GET', '/v1/runs/nope', undefined, as(other.rawKey))).status).toBe(404)
    expect(await (await it.call('GET', '/v1/runs', undefined, as(other.rawKey))).json()).toEqual([])
    expect((await it.call('POST', '/v1/runs', run('x'), as(other.rawKey))).status).toBe(404)

    const versionId = (await it.json<Run>(200, 'GET', `/v1/runs/${id}`)).agentVersionId
    await it.call('POST', '/v1/agents', { name: 'worker', manifest: {} }, as(other.rawKey))
    const theirs = (await (await it.call('POST', '/v1/runs', run('x'), as(other.rawKey))).json()) as Run
    for (const [path, body] of [
      ['/v1/runs', { ...run('x'), versionId }],
      [`/v1/runs/${theirs.id}/fork`, { fromStepId: 'model-1', versionId }],
    ] as const) {
      const foreign = await it.call('POST', path, body, as(other.rawKey))
      expect([foreign.status, await foreign.json()]).toMatchObject([403, { code: 'forbidden_tenant' }])
    }
  })
})
