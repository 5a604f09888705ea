import { afterEach, describe, expect, it } from 'vitest'
import { type Exchange, get, ok, post } from '../../runtime/connectors/testing/fixture.ts'
import { fixtures } from '../../runtime/connectors/testing/fixtures.ts'
import type { ModelAnswer, ModelRequest, ToolResult } from '../../runtime/execution/models/model.ts'
import { says } from '../../runtime/execution/testing/engine-fixture.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Run, Step } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { connectorFixture } from './connector-fixture.ts'
import { expectRebuilt } from './rebuilt.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

const { headers, config } = fixtures.slack
const users = get('/api/users.list', { limit: '100' })
const message = { channel: 'C1', text: 'hi' }
const listUsers = { name: 'slack__list_users' }
const postMessage = { name: 'slack__post_message', arguments: message }

/** What is sent for a step: a key goes along with what changes something. */
const sent = (runId: string, stepId: string, attempt = 1): Exchange[0] => ({
  ...post('/api/chat.postMessage', message),
  headers: { 'idempotency-key': `${runId}:${stepId}:${attempt}` },
})

/** An agent with connectors whose model says one thing after the other. */
async function worker(manifest: object, answers: readonly ModelAnswer[], installed = true) {
  const asked: ModelRequest[] = []
  // The vendor's script names the run, so the model says nothing before the test has written it.
  let go = Promise.withResolvers<void>()
  const model = {
    id: 'test/model',
    async ask(request: ModelRequest) {
      await go.promise
      asked.push(structuredClone({ ...request }))
      const turn = request.messages.filter(({ role }) => role === 'assistant').length
      const answer = answers[turn]
      if (!answer) throw new Error(`nothing is scripted for turn ${turn + 1}`)
      return answer
    },
  }
  const made = await connectorFixture({ models: { find: async () => model } })
  open.push(made)
  const { json, call } = made
  if (installed) await made.install('slack', config)
  const retry = { maxAttempts: 3, backoffMs: 0, maxBackoffMs: 5, jitter: false }
  await json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { retry, ...manifest } })
  return {
    ...made,
    asked,
    go: () => go.resolve(),
    start() {
      go = Promise.withResolvers<void>()
      return json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'go' } })
    },
    async ended({ id }: Run) {
      go.resolve()
      await (await call('GET', `/v1/runs/${id}/events`)).text()
      const steps = await json<Step[]>(200, 'GET', `/v1/runs/${id}/steps`)
      await expectRebuilt({ json }, id, steps)
      return {
        run: await json<Run>(200, 'GET', `/v1/runs/${id}`),
        steps,
        journal: await json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`),
      }
    },
    /** What the model was told of its calls of a turn. */
    told(turn: number): { content: unknown; failed: boolean }[] {
      const results = asked[turn]?.messages.flatMap(one => (one.role === 'tool' ? [one.results] : [])) ?? []
      const last: readonly ToolResult[] = results.at(-1) ?? []
      return last.map(({ content, failed }) => ({ content: JSON.parse(content) as unknown, failed }))
    },
  }
}

describe('actions as tools', () => {
  it('are offered with their schemas: all of a connector, or the ones that are named', async () => {
    const { start, ended, asked } = await worker({ connectors: ['slack.list_users', 'github', 'slack.list_users'] }, [
      says('done'),
    ])
    await ended(await start())
    expect(asked[0]!.tools.map(({ name }) => name)).toEqual([
      'slack__list_users',
      ...['list_repos', 'list_prs', 'get_pr', 'list_issues', 'get_issue', 'create_issue'].map(one => `github__${one}`),
    ])
    expect(asked[0]!.tools[0]).toMatchObject({
      description: 'Slack: Lists the people of the workspace.',
      parameters: { type: 'object', properties: { limit: { type: 'integer', default: 100 } } },
    })
  })

  it('are steps: journaled, called with the key of the step, and without a secret in what is kept', async () => {
    const on = await worker({ connectors: ['slack'] }, [says('', [listUsers, postMessage]), says('done')])
    const { vendor } = on
    const run = await on.start()
    vendor.script(headers, [
      [users, ok({ ok: true, members: [] })],
      [sent(run.id, 'connector-1-2'), ok({ ok: true, ts: '1' })],
    ])
    const { run: after, steps, journal } = await on.ended(run)
    expect(vendor.problems()).toEqual([])
    expect(after).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
    expect(steps.map(({ stepId, kind, status }) => [stepId, kind, status])).toEqual([
      ['model-1', 'model', 'completed'],
      ['connector-1-1', 'connector', 'completed'],
      ['connector-1-2', 'connector', 'completed'],
      ['model-2', 'model', 'completed'],
    ])
    expect(on.told(1)).toEqual([
      { content: { ok: true, members: [] }, failed: false },
      { content: { ok: true, ts: '1' }, failed: false },
    ])
    expect(JSON.stringify(journal)).not.toContain(String(config.botToken))
  })

  it('of a vendor whose answer is nested without end fail, and a call of the API says why', async () => {
    for (const levels of [600, 5000, 400_000]) {
      const on = await worker({ connectors: ['slack.list_users'] }, [says('', [listUsers]), says('done')])
      const raw = `{"ok":true,"members":${'['.repeat(levels)}${']'.repeat(levels)}}`
      on.vendor.script(headers, [[users, { raw }]])
      const { run } = await on.ended(await on.start())
      expect(run).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
      expect(on.told(1)).toMatchObject([{ failed: true }])
      on.vendor.script(headers, [[users, { raw }]])
      const answer = await on.call('POST', '/v1/connectors/slack/execute?action=list_users', {})
      expect([answer.status, await answer.json()]).toMatchObject([
        502,
        { code: 'upstream_failed', upstreamMessage: 'answered with something nested deeper than 500 levels' },
      ])
    }
  })

  it('read again after a moment when the vendor is busy, each try on record, and write once', async () => {
    const on = await worker({ connectors: ['slack'] }, [says('', [listUsers, postMessage]), says('done')])
    const busy = { status: 429, headers: { 'retry-after': '0' }, body: { ok: false, error: 'ratelimited' } }
    const run = await on.start()
    on.vendor.script(headers, [
      [users, busy],
      [users, ok({ ok: true, members: [] })],
      [sent(run.id, 'connector-1-2'), busy],
    ])
    const { journal } = await on.ended(run)
    expect(on.vendor.problems()).toEqual([])
    const said = journal.events.filter(({ stepId }) => stepId.startsWith('connector-'))
    const of = (id: string) =>
      said.flatMap(({ stepId, kind, attempt }) => (stepId === id ? [`${kind} ${attempt}`] : []))
    expect(of('connector-1-1')).toEqual(['step_started 1', 'step_retrying 1', 'step_started 2', 'step_completed 2'])
    expect(of('connector-1-2')).toEqual(['step_started 1', 'step_failed 1'])
    expect(on.told(1)[1]).toEqual({
      content: { error: 'slack.post_message: ratelimited', code: 'upstream_failed' },
      failed: true,
    })
  })

  it('tell the model what is wrong, so that it may do something else', async () => {
    const climbing = { name: 'github__get_pr', arguments: { owner: '..', repo: 'x', number: 1 } }
    const wrong = { name: 'slack__post_message', arguments: { channel: 'C1' } }
    const on = await worker({ connectors: ['slack', 'github'] }, [
      ...[says('', [wrong, climbing, postMessage]), says('done')],
    ])
    await on.install('github', fixtures.github.config)
    const run = await on.start()
    on.vendor.script(headers, [[sent(run.id, 'connector-1-3'), fixtures.slack.fault]])
    expect((await on.ended(run)).run.status).toBe('succeeded')
    expect(on.told(1)).toMatchObject([
      { failed: true, content: { error: expect.stringContaining('slack__post_message do not fit') } },
      { failed: true, content: { code: 'bad_arguments' } },
      { failed: true, content: { error: 'slack.post_message: channel_not_found', code: 'upstream_failed' } },
    ])
  })

  it('take an id that a model writes as a number', async () => {
    const on = await worker({ connectors: ['telegram.send_message'] }, [
      says('', [{ name: 'telegram__send_message', arguments: { chat_id: -1001234567890, text: 'hello' } }]),
      says('done'),
    ])
    const { config: given, actions } = fixtures.telegram
    await on.install('telegram', given)
    const run = await on.start()
    const [[request, answer]] = actions.send_message!.exchanges
    const key = { 'idempotency-key': `${run.id}:connector-1-1:1` }
    on.vendor.script({}, [[{ ...request, headers: key }, answer]])
    await on.ended(run)
    expect(on.vendor.problems()).toEqual([])
    expect(on.told(1)).toMatchObject([{ failed: false, content: { message_id: 5 } }])
  })

  it('fail with a sentence where the connector is not installed', async () => {
    const on = await worker({ connectors: ['slack'] }, [says('', [listUsers]), says('done')], false)
    await on.ended(await on.start())
    expect(on.told(1)).toEqual([
      {
        failed: true,
        content: {
          error: 'the connector slack is not installed: install it, or publish the agent without it',
          code: 'connector_not_ready',
        },
      },
    ])
  })
})

describe('a rule for approvals', () => {
  it('may cover every action that does more than read', async () => {
    const approvals = { tools: ['connectors:write'] }
    const on = await worker({ connectors: ['slack'], approvals }, [says('', [listUsers, postMessage]), says('done')])
    on.vendor.script(headers, [[users, ok({ ok: true, members: [] })]])
    const run = await on.start()
    const asked = await waitingFor(on, run)
    expect([on.vendor.count(), on.vendor.problems()]).toEqual([1, []])
    expect(asked).toMatchObject({
      reason: 'approval_required',
      stepId: 'approval-1-2',
      action: { name: 'slack__post_message', arguments: message, to: on.vendor.origin },
    })
    on.vendor.script(headers, [[sent(run.id, 'connector-1-2'), ok({ ok: true })]])
    await on.json(200, 'POST', `/v1/approvals/${asked.id}/approve`, {})
    expect((await on.ended(run)).run.status).toBe('succeeded')
    expect(on.vendor.problems()).toEqual([])
  })

  it.each([true, false])('asks where a call goes, and it goes nowhere else: installed before, %s', async installed => {
    const manifest = { connectors: ['slack'], approvals: { tools: ['connectors:write'] } }
    const on = await worker(manifest, [says('', [postMessage]), says('', [postMessage]), says('done')], installed)
    const run = await on.start()
    const first = await waitingFor(on, run)
    const here = installed ? on.vendor.origin : 'nowhere: slack is not installed'
    expect(first.action).toEqual({ name: 'slack__post_message', arguments: message, to: here })
    const there = `${on.vendor.origin}/elsewhere`
    await on.install('slack', { ...config, baseUrl: there })
    await on.json(200, 'POST', `/v1/approvals/${first.id}/approve`, {})
    const second = await waitingFor(on, run, 'approval-2-1')
    expect(second.action?.to).toBe(there)
    // Nothing was sent anywhere, which the vendor would say here.
    expect(on.vendor.problems()).toEqual([])
    const call = { ...sent(run.id, 'connector-2-1'), path: '/elsewhere/api/chat.postMessage' }
    on.vendor.script(headers, [[call, ok({ ok: true })]])
    await on.json(200, 'POST', `/v1/approvals/${second.id}/approve`, {})
    expect((await on.ended(run)).run.status).toBe('succeeded')
    expect(on.told(1)).toMatchObject([{ content: { code: 'connector_not_ready' }, failed: true }])
    expect(on.vendor.problems()).toEqual([])
  })

  it('shows the path of a vendor who has the token in it, without the token', async () => {
    const manifest = { connectors: ['telegram'], approvals: { tools: ['connectors:write'] } }
    const send = { name: 'telegram__send_message', arguments: { chatId: '1', text: 'hi' } }
    const on = await worker(manifest, [says('', [send]), says('done')])
    await on.install('telegram', { botToken: '123456:canary-of-a-bot' })
    const asked = await waitingFor(on, await on.start())
    expect(asked.action?.to).toBe(`${on.vendor.origin}/bot***`)
    expect(JSON.stringify(asked)).not.toContain('canary')
  })
})

async function waitingFor(on: Awaited<ReturnType<typeof worker>>, { id }: Run, stepId?: string): Promise<Approval> {
  on.go()
  for (;;) {
    const { status } = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
    const [asked] = await on.json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`)
    if (status === 'waiting' && asked && (stepId === undefined || asked.stepId === stepId)) return asked
    if (!['running', 'queued', 'waiting'].includes(status)) throw new Error(`the run is ${status}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

describe('a limit of a tool', () => {
  const twice = [says('', [postMessage]), says('', [postMessage, listUsers]), says('done')]

  async function limited(budget: object) {
    const on = await worker({ connectors: ['slack'] }, twice)
    await on.json(200, 'PUT', '/v1/agents/worker/budget', budget)
    const run = await on.start()
    on.vendor.script(headers, [
      [sent(run.id, 'connector-1-1'), ok({ ok: true })],
      [users, ok({ ok: true, members: [] })],
      [sent(run.id, 'connector-2-1'), ok({ ok: true })],
    ])
    return { ...on, after: await on.ended(run) }
  }

  it('is kept: the call beyond it fails, the model sees why, and nothing reaches the vendor', async () => {
    const on = await limited({ toolLimits: { 'slack.post_message': 1 } })
    expect(on.after.run.status).toBe('succeeded')
    expect(on.told(2)).toMatchObject([
      {
        failed: true,
        content: {
          code: 'tool_limit',
          error: 'slack.post_message may be called once a day by this agent, and was (budget toolLimits)',
        },
      },
      { failed: false },
    ])
    expect(on.vendor.problems()).toEqual(['POST /api/chat.postMessage did not come'])
    // The next run of the day has none left.
    const next = await on.start()
    on.vendor.script(headers, [[users, ok({ ok: true, members: [] })]])
    await on.ended(next)
    expect(on.vendor.problems()).toEqual([])
  })

  it('of a soft budget stops nothing', async () => {
    const on = await limited({ toolLimits: { 'slack.post_message': 1 }, hardFail: false })
    expect(on.told(2)).toMatchObject([{ failed: false }, { failed: false }])
    expect(on.vendor.problems()).toEqual([])
  })

  it('of none allows none', async () => {
    const on = await limited({ toolLimits: { 'slack.post_message': 0 } })
    expect(on.told(1)).toMatchObject([{ failed: true, content: { code: 'tool_limit' } }])
  })
})

it('leaves a session that may only read the actions that only read', async () => {
  const on = await worker({ connectors: ['slack'] }, [says('hello')])
  const { id } = await on.json<Session>(201, 'POST', '/v1/sessions', { agentName: 'worker' })
  on.go()
  const answer = await on.call('POST', `/v1/sessions/${id}/messages`, { content: 'hi', readOnlyTools: true })
  expect(answer.status).toBeLessThan(300)
  expect(on.asked[0]!.tools.map(({ name }) => name)).toEqual(['slack__list_channels', 'slack__list_users'])
})
