import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compact } from '../../runtime/host/backup.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { api } from './api.ts'
import { nodeFixture, until } from './node-fixture.ts'
import {
  type Answer,
  answerOf,
  closeAll,
  closedByHand,
  fixture,
  get,
  joined,
  listen,
  said,
  upTo,
} from './session-fixture.ts'

let folder: string
let url: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-privacy-'))
  url = join(folder, 'store.db')
})
afterEach(async () => {
  await closeAll()
  await rm(folder, { recursive: true, force: true })
})

const RECEIPTS = { receiptSeed: new Uint8Array(32).fill(9) }
const EMAIL = 'bob.canary@example.com'
const CARD = '4111 1111 1111 1111'
const BADGE = 'EMP-77812'
const all = `mail ${EMAIL} card ${CARD} badge ${BADGE}`
const clean = 'mail [email] card [card] badge [badge]'
const redact = ['email', 'card', { name: 'badge', pattern: 'EMP-\\d{4,6}' }]

/** Calls a tool with what the user said, and says again what came of it. */
const calling =
  (name: string, given: Record<string, unknown>): Answer =>
  async () =>
    answerOf('', { toolCalls: [{ id: 'c1', name, arguments: given }], stop: 'tools' })
const saying =
  (text: string): Answer =>
  async (_request, { onDelta }) => {
    for (const piece of text) onDelta?.(piece)
    return answerOf(text)
  }

type On = Awaited<ReturnType<typeof fixture>>

async function ended(on: Pick<On, 'json'>, id: string): Promise<Run> {
  await until(async () => {
    const run = await on.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
    return isTerminal(run.status) && run
  }, `run ${id} ends`)
  return on.json<Run>(200, 'GET', `/v1/runs/${id}`)
}

const start = (on: Pick<On, 'json'>, prompt: string) =>
  on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'friend', input: { prompt } })

/**
 * Everything that stands in the files of one side. The log is read before the store that takes it in, since a
 * connection that closes merges the two and removes the log.
 */
async function filesOf(side: string): Promise<string> {
  const names = (await readdir(folder)).filter(name => name.startsWith(`${side}.db`)).toSorted()
  expect(names).toContain(`${side}.db`)
  const texts: string[] = []
  for (const name of names.toReversed()) texts.push(await textOf(join(folder, name)))
  return texts.join('')
}

const textOf = (path: string): Promise<string> =>
  readFile(path, 'latin1').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code !== 'ENOENT') throw thrown
    return ''
  })

async function expectClean(side = 'store'): Promise<void> {
  const files = await filesOf(side)
  for (const canary of [EMAIL, CARD, BADGE]) expect([canary, files.includes(canary)]).toEqual([canary, false])
}

describe('privacy.redact', () => {
  it('takes personal data out before a provider is asked and before anything is kept', async () => {
    const answers = [calling('ask_human', { prompt: `Who is ${EMAIL}?` }), saying(`It is ${EMAIL}.`)]
    const on = await fixture(answers, { url }, { tools: ['ask_human'], privacy: { redact } })
    const made = await start(on, all)
    expect(made.input).toEqual({ prompt: clean })
    const [asked] = await until(async () => {
      const found = await on.json<Approval[]>(200, 'GET', `/v1/runs/${made.id}/approvals`)
      return found.length > 0 && found
    }, 'it asks')
    expect(asked!.prompt).toBe('Who is [email]?')
    await on.json(200, 'POST', `/v1/approvals/${asked!.id}/approve`, { comment: `His card is ${CARD}.` })
    const run = await ended(on, made.id)
    expect(run.output).toEqual({ result: 'It is [email].' })
    expect(on.seen.map(({ messages }) => JSON.stringify(messages)).join()).not.toMatch(/canary|4111|77812/)
    expect(on.seen[0]!.messages).toEqual([{ role: 'user', text: clean }])
    expect(JSON.stringify(on.seen[1]!.messages)).toContain('His card is [card].')
    await expectClean()
  })

  it('takes it out of failures, signals, schedules and what other agents are given', async () => {
    const failing: Answer = async () => {
      throw new Error(`no such user: ${EMAIL}`)
    }
    const on = await fixture(
      [calling('wait_signal', { name: 'go' }), failing, failing, failing],
      { url },
      {
        tools: ['wait_signal'],
        privacy: { redact },
      },
    )
    const made = await start(on, all)
    await until(async () => (await on.json<Run>(200, 'GET', `/v1/runs/${made.id}`)).parked, 'it waits')
    expect((await on.call('POST', `/v1/runs/${made.id}/signals/go`, { value: { from: EMAIL } })).status).toBe(204)
    const run = await ended(on, made.id)
    expect(run.error?.message).toContain('[email]')
    const { id } = await on.json<{ id: string }>(201, 'POST', '/v1/schedules', {
      agentName: 'friend',
      cronExpr: '0 0 1 1 *',
      enabled: false,
      config: { input: { prompt: clean } },
    })
    const fired = await on.json<Run>(201, 'POST', `/v1/schedules/${id}/run`)
    await ended(on, fired.id)
    await expectClean()
  })

  it('tells a turn whole where its pieces could hold half of it', async () => {
    const on = await fixture([saying(`Write to ${EMAIL}!`), saying('Yes.')], { url }, { privacy: { redact } })
    const { id } = await on.opened()
    const events = await listen(on, id)
    const reply = await said(on, id, `I am ${EMAIL}`, { systemHint: `Their card is ${CARD}.` })
    expect(reply.text).toBe('Write to [email]!')
    const heard = await upTo(events, 'message_completed')
    expect(joined(heard)).toBe('Write to [email]!')
    await said(on, id, 'Again?')
    expect(on.seen[1]!.messages.map(message => 'text' in message && message.text)).toEqual([
      'I am [email]',
      'Write to [email]!',
      'Again?',
    ])
    expect(on.seen[0]!.system).toContain('Their card is [card].')
    await events.stop()
    await expectClean()
  })

  it('refuses a pattern that cannot be matched in bounded time, with its reason', async () => {
    const on = await fixture([], { url })
    const publish = (pattern: string) =>
      on.call('POST', '/v1/agents', { name: 'other', manifest: { privacy: { redact: [{ name: 'x', pattern }] } } })
    const refused = await publish('(a)(?=b)\\1')
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      {
        error:
          'manifest.privacy.redact.0.pattern: this pattern cannot be used: lookarounds and named groups are not supported at character 5',
      },
    ])
    expect((await publish('(a+)+b')).status).toBe(201)
  })

  it('holds on nodes', async () => {
    const control = await api({
      url: join(folder, 'control.db'),
      masterKey: new Uint8Array(32).fill(7),
      embeddedNode: false,
    })
    const seen: string[] = []
    const node = await nodeFixture(control, folder, {
      name: 'one',
      models: {
        find: async () => ({
          id: 'test/model',
          ask: async request => {
            seen.push(JSON.stringify(request.messages))
            return answerOf(`Hello ${EMAIL}`)
          },
        }),
      },
    })
    try {
      await control.json(201, 'POST', '/v1/agents', {
        name: 'friend',
        labels: { 'waybill.pool': 'default' },
        manifest: { privacy: { redact, storePrompts: false } },
      })
      const { id } = await start(control, all)
      const run = await ended(control, id)
      expect(run).toMatchObject({ status: 'succeeded', output: { result: 'Hello [email]' } })
      expect(run.input).toBeUndefined()
      expect(seen.join()).toContain(clean)
      expect(seen.join()).not.toContain(EMAIL)
      for (const table of ['blobs']) expect((await node.db.execute(`select * from ${table}`)).rows).toEqual([])
    } finally {
      await node.close()
      await control.close()
    }
    await expectClean('one')
    await expectClean('control')
  })
})

describe('privacy.storePrompts: false', () => {
  const manifest = { tools: ['ask_human'], privacy: { storePrompts: false } }
  const PROMPT = 'the-prompt-canary'
  const ANSWER = 'the-answer-canary'
  const asking: Answer = async () =>
    answerOf('thinking-canary', {
      toolCalls: [{ id: 'c', name: 'ask_human', arguments: { prompt: 'Go on?' } }],
      stop: 'tools',
    })

  async function texts(on: Pick<On, 'db'>, id: string): Promise<string> {
    const found = await Promise.all([
      on.db.execute({ sql: 'select input from run_data where run_id = ?', args: [id] }),
      on.db.execute({ sql: 'select body from events where run_id = ?', args: [id] }),
      on.db.execute({ sql: 'select cast(content as text) from blobs where run_id = ?', args: [id] }),
    ])
    return found.flatMap(({ rows }) => rows.map(row => String(row[0]))).join('\n')
  }

  it('keeps what a restart needs until the end, and drops it in the commit that ends the run', async () => {
    const first = await fixture([asking], { url, ...RECEIPTS }, manifest)
    const { id } = await start(first, PROMPT)
    const asked = await until(async () => {
      return (await first.json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`))[0]
    }, 'it asks')
    const during = await texts(first, id)
    expect([during.includes(PROMPT), during.includes('thinking-canary')]).toEqual([true, true])
    await first.close()
    closedByHand()
    const second = await fixture([saying(ANSWER)], { url, ...RECEIPTS }, manifest)
    await second.json(200, 'POST', `/v1/approvals/${asked.id}/approve`, { comment: 'comment-canary' })
    const run = await ended(second, id)
    // It went on with everything that it had been told before.
    expect(JSON.stringify(second.seen[0]!.messages)).toMatch(/the-prompt-canary.*thinking-canary.*comment-canary/)
    expect(run).toMatchObject({ status: 'succeeded', output: { result: ANSWER } })
    expect(run.input).toBeUndefined()
    expect(await texts(second, id)).not.toMatch(/prompt-canary|thinking-canary|answer-canary|comment-canary/)
    const { events } = await second.json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
    const outputs = events.flatMap(({ kind, payload }) => (kind === 'step_completed' ? [payload] : []))
    for (const { output } of outputs as { output: object }[]) expect(Object.keys(output)).toEqual(['$blob'])
    const receipt = await second.json<object>(200, 'GET', `/v1/runs/${id}/receipt`)
    expect(await second.json(200, 'POST', '/v1/runs/receipts/verify', receipt)).toMatchObject({
      valid: true,
      checks: { signature: 'ok', journal: 'ok', record: 'ok' },
    })
    await second.db.execute({ sql: "update run_data set output = '{}' where run_id = ?", args: [id] })
    expect(await second.json(200, 'POST', '/v1/runs/receipts/verify', receipt)).toMatchObject({ valid: false })
    const forked = await second.call('POST', `/v1/runs/${id}/fork`, { fromStepId: 'model-2' })
    expect([forked.status, await forked.json()]).toMatchObject([
      409,
      { error: `what run ${id} was given is gone (privacy.storePrompts is false): start a new run with POST /v1/runs` },
    ])
  })

  it('gives none of it again under the key of the call that began the run', async () => {
    const on = await fixture([saying(ANSWER)], { url }, manifest)
    const key = { 'idempotency-key': 'k' }
    const begin = () => on.call('POST', '/v1/runs', { agentName: 'friend', input: { prompt: PROMPT } }, key)
    const { id } = (await (await begin()).json()) as Run
    await ended(on, id)
    const again = await begin()
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
    const answer = (await again.json()) as Run
    expect([answer.id, answer.status, answer.input]).toEqual([id, 'queued', undefined])
    expect((await on.db.execute('select bound, answer from idempotency')).rows).toEqual([{ bound: id, answer: null }])
  })

  it('drops a run that fails or is cancelled as well', async () => {
    const on = await fixture([asking], { url }, manifest)
    const { id } = await start(on, PROMPT)
    await until(async () => (await on.json<Approval[]>(200, 'GET', `/v1/runs/${id}/approvals`))[0], 'it asks')
    await on.json(200, 'POST', `/v1/runs/${id}/cancel`)
    expect(await texts(on, id)).not.toMatch(/canary/)
  })

  it('lets a conversation go on, and drops what was asked in it when it is over', async () => {
    const on = await fixture([saying('one'), saying('two')], { url }, manifest)
    const { id } = await on.opened()
    const first = await said(on, id, PROMPT)
    const second = await said(on, id, 'and then?')
    expect(on.seen[1]!.messages).toMatchObject([{ text: PROMPT }, { text: 'one' }, { text: 'and then?' }])
    await on.json(200, 'POST', `/v1/sessions/${id}/stop`)
    for (const turn of [first, second]) expect(await texts(on, turn.turnId)).not.toMatch(/canary|and then/)
    expect((await get(on, id)).messages?.map(({ content }) => content)).toEqual(['', 'one', '', 'two'])
  })
})

describe('what is deleted', () => {
  it('is given to no later call under an Idempotency-Key, which is refused and does nothing', async () => {
    const on = await fixture([saying('one'), saying('two'), saying('three')], { url })
    const agentName = 'friend'
    const keyed = (path: string, body: object) => on.call('POST', path, body, { 'idempotency-key': 'k' })
    const made = async (path: string, body: object) => {
      const first = await keyed(path, body)
      const again = await keyed(path, body)
      expect([path, again.headers.get('idempotency-replayed')]).toEqual([path, 'true'])
      const answer = (await first.json()) as { id: string; turnId: string }
      expect(await again.json()).toEqual(answer)
      return answer
    }
    const run = { agentName, input: { prompt: EMAIL } }
    const { id } = await made('/v1/runs', run)
    await ended(on, id)
    const fork = { fromStepId: 'model-1' }
    const forked = await made(`/v1/runs/${id}/fork`, fork)
    await ended(on, forked.id)
    const opening = { agentName, title: EMAIL, environment: { OWNER: EMAIL } }
    const session = await made('/v1/sessions', opening)
    const messages = `/v1/sessions/${session.id}/messages`
    const { turnId } = await made(messages, { content: EMAIL })
    const schedule = { agentName, cronExpr: '0 0 1 1 *', config: { input: { prompt: EMAIL } } }
    const { id: scheduleId } = await made('/v1/schedules', schedule)
    const person = { email: EMAIL, name: 'Bob' }
    const invited = (await (await keyed('/v1/users', person)).json()) as { user: { id: string } }
    const gone: [string, string, object][] = [
      [`/v1/runs/${forked.id}`, `/v1/runs/${id}/fork`, fork],
      [`/v1/runs/${id}`, '/v1/runs', run],
      [`/v1/runs/${turnId}`, messages, { content: EMAIL }],
      [`/v1/sessions/${session.id}`, '/v1/sessions', opening],
      [`/v1/sessions/${session.id}`, messages, { content: EMAIL }],
      [`/v1/schedules/${scheduleId}`, '/v1/schedules', schedule],
      [`/v1/users/${invited.user.id}`, '/v1/users', person],
    ]
    for (const [object, path, body] of gone) {
      const status = (await on.call('DELETE', object)).status
      expect([object, [204, 404].includes(status)]).toEqual([object, true])
      const again = await keyed(path, body)
      expect([path, again.status, (await again.text()).includes(EMAIL)]).toEqual([path, 404, false])
    }
    expect(await on.json(200, 'GET', '/v1/runs')).toEqual([])
  })

  it('is overwritten in the file, and gone from the log and the search once it was compacted', async () => {
    // Without a master key everything stands in clear.
    const on = await fixture([saying(`${EMAIL} `.repeat(2000)), saying('two'), saying('three')], { url })
    const kept = await start(on, 'kept')
    await ended(on, kept.id)
    const body = {
      agentName: 'friend',
      input: { prompt: `${EMAIL} ${'x'.repeat(50_000)}` },
      labels: { of: 'label-canary' },
    }
    const { id } = await on.json<Run>(201, 'POST', '/v1/runs', body)
    await ended(on, id)
    const session = await on.opened()
    const { turnId } = await said(on, session.id, BADGE)
    expect(await on.json(200, 'GET', '/v1/runs?q=bob')).toHaveLength(1)
    const runs = await on.json<Run[]>(200, 'GET', '/v1/runs')
    expect((await on.call('DELETE', `/v1/sessions/${session.id}`)).status).toBe(204)
    for (const run of [...runs, { id: turnId }])
      expect((await on.call('DELETE', `/v1/runs/${run.id}`)).status).toBe(204)
    await compact({ PLATFORM_DATABASE_URL: url })
    await expectClean()
    expect(await filesOf('store')).not.toContain('canary')
  })
})

it('tells browsers and proxies to keep no answer', async () => {
  const on = await fixture([saying('one')], { url })
  const { id } = await start(on, EMAIL)
  await ended(on, id)
  const of = `/v1/runs/${id}`
  for (const path of [
    '/v1/runs',
    of,
    `${of}/journal`,
    `${of}/steps/model-1/request`,
    '/v1/overview',
    '/v1/audit-log',
  ]) {
    const answer = await on.call('GET', path)
    expect([path, answer.status, answer.headers.get('cache-control')]).toEqual([path, 200, 'no-store'])
  }
})
