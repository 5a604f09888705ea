import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkJournal } from '../../shared/sign/testing/check-journal.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { StepRequest } from '../../shared/wire/runtime/step-request.ts'
import { type Api, api } from './api.ts'
import { type NodeFixture, nodeFixture, until } from './node-fixture.ts'
import { siblings } from './siblings.ts'

interface Step {
  stepId: string
  status: string
  copied: boolean
}

/** What holds for a run wherever it is executed: one text, two data planes, the farther one also from a control plane that it has not dialled. */
describe.each(['embedded', 'tunnel', 'sibling'] as const)('the data plane: %s', peer => {
  let folder: string
  let control: Api
  let group: Api[]
  let node: NodeFixture | undefined

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-plane-'))
    const url = join(folder, 'control.db')
    if (peer === 'sibling') {
      group = await siblings(2, { url, embeddedNode: false })
      control = group[1]!
    } else {
      const masterKey = new Uint8Array(32).fill(7)
      control = await api({ url, masterKey, embeddedNode: peer === 'embedded' })
      group = [control]
    }
    if (peer !== 'embedded') {
      const made = await nodeFixture(group[0]!, folder)
      node = made
      await until(async () => {
        const { status } = await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${made.identity.nodeId}`)
        return status === 'online'
      }, 'the node is online')
    }
    const tools = ['wait', 'wait_signal', 'ask_human', 'http_request']
    await control.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { tools } })
    const careful = { tools: ['wait'], approvals: { tools: ['wait'] } }
    await control.json(201, 'POST', '/v1/agents', { name: 'careful', manifest: careful })
  })
  afterEach(async () => {
    await node?.close()
    node = undefined
    await Promise.all(group.map(one => one.close()))
    await rm(folder, { recursive: true, force: true })
  })

  const start = (prompt: string, agentName = 'worker', more: object = {}) =>
    control.json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt }, ...more })
  const summary = (id: string) => control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
  const become = (id: string, status: Run['status']) =>
    until(async () => (await summary(id)).status === status, `run ${id} is ${status}`)
  async function ended(id: string): Promise<Run> {
    await until(async () => isTerminal((await summary(id)).status), `run ${id} ends`)
    return control.json<Run>(200, 'GET', `/v1/runs/${id}`)
  }
  const steps = (id: string) => control.json<Step[]>(200, 'GET', `/v1/runs/${id}/steps`)
  const journal = (id: string) => control.json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
  const receipt = (id: string) =>
    until(async () => {
      const answer = await control.call('GET', `/v1/runs/${id}/receipt`)
      return answer.ok && ((await answer.json()) as Receipt)
    }, `run ${id} has a receipt`)
  const asked = (id: string) =>
    until(async () => (await control.json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`))[0], 'somebody is asked')

  /** The receipt covers the journal, and the journal is one chain. */
  async function holds(id: string): Promise<Receipt> {
    const [kept, chain] = [await receipt(id), await journal(id)]
    expect(checkJournal(id, chain.events)).toMatchObject({ ok: true, head: chain.head })
    expect(
      await control.json<VerifyResult>(200, 'POST', '/v1/runs/receipts/verify', { receipt: kept, journal: chain }),
    ).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
    return kept
  }

  it('answers the record, the list, the steps, the journal in both forms, and a receipt that holds', async () => {
    const { id, status, createdAt } = await start('hello', 'worker', { labels: { team: 'a' } })
    expect(status).toBe('queued')
    const run = await ended(id)
    expect(run).toMatchObject({
      id,
      status: 'succeeded',
      createdAt,
      agentName: 'worker',
      labels: { team: 'a' },
      trigger: { kind: 'api' },
      input: { prompt: 'hello' },
      output: { result: expect.stringContaining('hello') },
      isolation: { declared: 'shared' },
      budgetExceeded: false,
      model: 'demo/echo',
    })
    expect(run.tokensIn).toBeGreaterThan(0)
    expect(await control.json<Run[]>(200, 'GET', '/v1/runs?agentName=worker&status=succeeded')).toEqual([run])
    expect(await steps(id)).toEqual([
      expect.objectContaining({ stepId: 'model-1', status: 'completed', copied: false }),
    ])
    const { events, eventCount, sealed } = await journal(id)
    expect([eventCount, sealed, events.map(({ kind }) => kind)]).toEqual([2, true, ['step_started', 'step_completed']])
    const lines = await control.call('GET', `/v1/runs/${id}/journal`, undefined, { accept: 'application/x-ndjson' })
    const parsed = (await lines.text())
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(parsed).toEqual(events)
    expect((await holds(id)).payload).toMatchObject({ status: 'succeeded', eventCount: 2, tokensIn: run.tokensIn })
    expect((await control.call('GET', `/v1/runs/${crypto.randomUUID()}`)).status).toBe(404)
  })

  it('streams events as they come, from where a reader was, and closes at the end', async () => {
    const { id } = await start('/call wait_signal {"name":"go"}')
    const stream = await control.events(`/v1/runs/${id}/events`)
    for (let seq = 1; seq <= 3; seq++) expect((await stream.next())?.id).toBe(String(seq))
    await control.json(204, 'POST', `/v1/runs/${id}/signals/go`, { value: 'green' })
    expect((await stream.all()).map(event => event.id)).toEqual(['4', '5', '6'])
    const rest = await control.events(`/v1/runs/${id}/events`, { 'last-event-id': '4' })
    expect((await rest.all()).map(event => event.id)).toEqual(['5', '6'])
    const replay = await control.events(`/v1/runs/${id}/events?live=false&from_seq=3`)
    const { events } = await journal(id)
    expect(await replay.all()).toMatchObject(events.slice(2).map(event => ({ id: String(event.seq), data: event })))
    expect(await ended(id)).toMatchObject({ output: { result: expect.stringContaining('green') } })
    await holds(id)
  })

  it('asks humans, takes their answer once, and ends a run that they reject', async () => {
    const { id } = await start('/call wait {"seconds":0}', 'careful')
    const approval = await asked(id)
    const action = { name: 'wait', arguments: { seconds: 0 } }
    expect(approval).toMatchObject({ status: 'pending', reason: 'approval_required', action })
    await become(id, 'waiting')
    expect(await control.json<Approval[]>(200, 'GET', '/v1/approvals?status=pending')).toHaveLength(1)
    await control.json(200, 'POST', `/v1/approvals/${approval.id}/approve`, { comment: 'fine' })
    expect(await control.json(409, 'POST', `/v1/approvals/${approval.id}/reject`, {})).toMatchObject({
      code: 'approval_decided',
    })
    expect(await ended(id)).toMatchObject({ status: 'succeeded' })
    const other = await start('/call wait {"seconds":0}', 'careful')
    const refused = await asked(other.id)
    await control.json(200, 'POST', `/v1/runs/${other.id}/approvals/${refused.id}/reject`, { comment: 'not today' })
    expect(await ended(other.id)).toMatchObject({
      status: 'failed',
      error: { code: 'approval_rejected', message: 'not today' },
      output: {},
    })
    expect((await holds(other.id)).payload.status).toBe('failed')
    const question = await start('/call ask_human {"prompt":"how many?"}')
    const open = await asked(question.id)
    expect(open.prompt).toBe('how many?')
    await control.json(200, 'POST', `/v1/approvals/${open.id}/approve`, { output: 12 })
    expect(await ended(question.id)).toMatchObject({ output: { result: expect.stringContaining('12') } })
  })

  it('tells what each model step sent and got, rebuilt where the journal is', async () => {
    const prompt = '/call wait {"seconds":0}'
    const { id } = await start(prompt)
    await ended(id)
    const path = (stepId: string) => `/v1/runs/${id}/steps/${stepId}/request`
    const last = await control.json<StepRequest>(200, 'GET', path('model-2'))
    expect(last).toMatchObject({
      step: { stepId: 'model-2', model: 'demo/echo' },
      answer: { text: expect.stringContaining('waited'), stop: 'end' },
      request: {
        exact: true,
        messages: [
          { role: 'user', text: prompt },
          { role: 'assistant', toolCalls: [{ name: 'wait' }], stepId: 'model-1' },
          { role: 'tool', results: [{ name: 'wait', stepId: 'timer-1-1', failed: false }] },
        ],
      },
    })
    expect(last.request?.tools.map(({ name }) => name)).toEqual(['wait', 'wait_signal', 'ask_human', 'http_request'])
    const older = await control.json<StepRequest>(200, 'GET', `${path('model-2')}?before=2`)
    expect(older.request).toMatchObject({ firstMessage: 0, messages: [{ role: 'user' }, { role: 'assistant' }] })
    expect((await control.call('GET', path('timer-1-1'))).status).toBe(400)
    expect((await control.call('GET', path('model-9'))).status).toBe(404)
    const { rows } = await control.db.execute('select count(*) from tool_lists')
    expect(rows[0]?.[0]).toBe(peer === 'embedded' ? 1 : 0)
  })

  it('cancels at once and once, and signs what there was', async () => {
    const { id } = await start('/call wait {"seconds":60}')
    await until(async () => (await journal(id)).eventCount >= 3, 'it waits')
    expect(await control.json<Run>(200, 'POST', `/v1/runs/${id}/cancel`, { reason: 'enough' })).toMatchObject({
      status: 'cancelled',
      cancelReason: 'enough',
      output: {},
    })
    expect(await control.json(409, 'POST', `/v1/runs/${id}/cancel`, {})).toMatchObject({ code: 'run_terminal' })
    expect(await control.json(409, 'POST', `/v1/runs/${id}/signals/go`, {})).toMatchObject({ code: 'run_terminal' })
    expect((await holds(id)).payload.status).toBe('cancelled')
    expect((await journal(id)).events.at(-1)).toMatchObject({ kind: 'step_failed' })
  })

  it('forks from a step: earlier ones are copies that cost nothing', async () => {
    const { id } = await start('/call*2 wait {"seconds":0}')
    const source = await ended(id)
    const key = { 'idempotency-key': 'fork-1' }
    const answer = await control.call('POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-2' }, key)
    const fork = (await answer.json()) as Run
    expect([answer.status, fork]).toMatchObject([201, { status: 'queued', forkedFrom: { runId: id } }])
    const forked = await ended(fork.id)
    expect(forked).toMatchObject({
      status: 'succeeded',
      input: source.input,
      trigger: { kind: 'fork', ref: id },
      forkedFrom: { runId: id, stepId: 'model-2' },
    })
    expect(forked.nodeId).toBe(source.nodeId)
    expect((await steps(fork.id)).map(step => [step.stepId, step.copied])).toEqual([
      ['model-1', true],
      ['timer-1-1', true],
      ['model-2', false],
      ['timer-2-1', false],
      ['model-3', false],
    ])
    expect(forked.tokensIn).toBeLessThan(source.tokensIn)
    expect((await holds(fork.id)).payload.tokensIn).toBe(forked.tokensIn)
    const again = await control.call('POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-2' }, key)
    expect(await again.json()).toMatchObject({ id: fork.id })
    const input = { prompt: 'something else' }
    const other = await control.json<Run>(201, 'POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-1', input })
    expect(await ended(other.id)).toMatchObject({
      input,
      output: { result: expect.stringContaining('something else') },
    })
    expect(await control.json(404, 'POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-9' })).toMatchObject({
      error: 'step not found: model-9',
    })
  })

  it('retries what failed or was cancelled from its first step without a result, and nothing else', async () => {
    const fine = await start('fine')
    await ended(fine.id)
    expect(await control.json(409, 'POST', `/v1/runs/${fine.id}/retry`, {})).toMatchObject({ code: 'run_not_terminal' })
    const { id } = await start('/call wait {"seconds":0}\n/call wait_signal {"name":"go"}')
    await until(async () => (await steps(id)).length === 4, 'it waits for the signal')
    await control.json(200, 'POST', `/v1/runs/${id}/cancel`, {})
    await receipt(id)
    const retried = await control.json<Run>(201, 'POST', `/v1/runs/${id}/retry`, {})
    await until(async () => (await steps(retried.id)).length === 4, 'it waits for the signal again')
    expect((await steps(retried.id)).map(({ copied }) => copied)).toEqual([true, true, true, false])
    await control.json(204, 'POST', `/v1/runs/${retried.id}/signals/go`, { value: 'now' })
    expect(await ended(retried.id)).toMatchObject({ status: 'succeeded', output: { result: expect.anything() } })
    await holds(retried.id)
  })

  it('retries a run whose steps are all done without doing one of them again', async () => {
    const manifest = { tools: ['wait'], limits: { maxTurns: 1 } }
    await control.json(201, 'POST', '/v1/agents', { name: 'brief', manifest })
    const { id } = await start('/call*2 wait {"seconds":0}', 'brief')
    expect((await ended(id)).error?.code).toBe('limit_exceeded')
    await receipt(id)
    const retried = await control.json<Run>(201, 'POST', `/v1/runs/${id}/retry`, {})
    expect(await ended(retried.id)).toMatchObject({ tokensOut: 0, forkedFrom: { runId: id, stepId: 'entrypoint' } })
    expect((await steps(retried.id)).map(({ stepId, copied }) => `${stepId} ${copied}`)).toEqual([
      ...['model-1 true', 'timer-1-1 true'],
    ])
    await holds(retried.id)
  })

  it('deletes what has ended, and only that', async () => {
    const { id } = await start('/call wait_signal {"name":"go"}')
    expect(await control.json(409, 'DELETE', `/v1/runs/${id}`)).toMatchObject({ code: 'run_not_terminal' })
    await control.json(204, 'POST', `/v1/runs/${id}/signals/go`, {}).catch(async () => {
      await until(async () => (await control.call('POST', `/v1/runs/${id}/signals/go`, {})).ok, 'it has a node')
    })
    await ended(id)
    await control.json(204, 'DELETE', `/v1/runs/${id}`)
    for (const path of ['', '/steps', '/journal', '/events']) await control.json(404, 'GET', `/v1/runs/${id}${path}`)
    const { db } = node ?? control
    await until(
      async () => (await db.execute({ sql: 'select 1 from events where run_id = ?', args: [id] })).rows.length === 0,
      'its journal is gone where it was',
    )
  })
})
