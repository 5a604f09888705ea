import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { typed } from '../../shared/cli/testing/typed.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { chatFrames } from '../../tests/upstream/answers.ts'
import { answer, scriptedUpstream, stream } from '../../tests/upstream/scripted.ts'
import { runtimeProgram } from './commands.ts'
import { differences } from './differences.ts'
import { atTerminal, KEY, type TerminalFixture, terminalFixture } from './testing/terminal-fixture.ts'

let fixture: TerminalFixture
const say = (...args: string[]) => fixture.run(...args)
const rowsOf = (out: string) =>
  out
    .trimEnd()
    .split('\n')
    .map(line => line.split(/ {2,}/))
async function json<T>(...args: string[]): Promise<T> {
  const { code, out, err } = await say(...args, '--json')
  expect([code, err]).toEqual([0, ''])
  return JSON.parse(out) as T
}

beforeAll(async () => {
  fixture = await terminalFixture({ PLATFORM_OUTBOUND_ALLOW: '127.0.0.1' })
  await fixture.call('POST', '/v1/agents', { name: 'worker', manifest: { tools: ['wait'] } })
})
afterAll(() => fixture.close())

describe('a list', () => {
  it('says what to do where there is nothing, on standard error', async () => {
    for (const [noun, next] of [
      ['schedules', 'schedules create'],
      ['sessions', 'sessions chat'],
      ['budgets', 'budgets set'],
      ['webhooks', 'webhooks create'],
      ['secrets', 'secrets set'],
      ['providers', 'providers set'],
      ['nodes', 'nodes create'],
      ['connectors', '/v1/connectors/install'],
    ] as const) {
      const { code, out, err } = await say(noun, 'list')
      expect([code, out, err]).toEqual([0, '', expect.stringContaining(next)])
      expect(await json<unknown[]>(noun, 'list')).toEqual([])
    }
  })

  it('has a head, its first column alone with --quiet, and says when there is more', async () => {
    for (let count = 0; count < 3; count++) await say('run', 'worker', `number ${count}`, '--quiet')
    const two = await say('runs', 'list', '--limit', '2')
    const [head, ...rows] = rowsOf(two.out)
    expect([head, rows.length, two.err]).toEqual([
      ['RUN', 'AGENT', 'STATUS', 'CREATED', 'USD', 'ERROR'],
      2,
      'There are more: --limit 4 shows them.\n',
    ])
    expect(rows[0]!.slice(1)).toEqual([
      'worker',
      'succeeded',
      expect.stringMatching(/^\d{4}-\d\d-\d\d [\d:]{8}Z$/),
      '0',
      '-',
    ])
    const ids = (await say('runs', 'list', '--agent', 'worker', '--status', 'succeeded', '--quiet')).out
    expect(ids.split('\n').slice(0, 2)).toEqual(rows.map(row => row[0]))
    const listed = JSON.parse((await say('runs', 'list', '--limit', '2', '--json')).out) as Run[]
    expect(listed.map(run => run.id)).toEqual(rows.map(row => row[0]))
  })

  it('names the word that was meant', async () => {
    expect(await say('runs', 'list', '--status', 'suceeded')).toMatchObject({
      code: 2,
      err: '--status: did you mean succeeded? Got "suceeded".\n',
    })
    expect(await say('runs', 'list', '--limit', 'all')).toMatchObject({
      code: 2,
      err: '--limit: expected a whole number from 1 up, got "all"\n',
    })
  })
})

describe('runtime runs', () => {
  it('shows, follows, cancels, retries, forks and deletes', async () => {
    const { id } = await fixture.call<Run>('POST', '/v1/runs', {
      agentName: 'worker',
      input: { prompt: '/call*2 wait {"seconds":0}' },
    })
    const log = await say('runs', 'logs', id, '--follow')
    expect(log.out.split('\n').map(line => line.split(/\s+/)[1])).toEqual([
      ...['model-1', 'timer-1-1', 'model-2', 'timer-2-1', 'model-3', undefined],
    ])
    const events = (await say('runs', 'logs', id, '--json')).out.trimEnd().split('\n')
    expect(events.map(line => (JSON.parse(line) as { kind: string }).kind)).toContain('step_completed')
    const shown = (await say('runs', 'get', id)).out
    expect(shown).toMatch(/^run +\S+\nagent +worker\nstatus +succeeded\n/)
    expect(shown).toContain('\ninput\n{\n  "prompt"')
    const forked = await json<Run>('runs', 'fork', id, 'model-2')
    expect(forked.forkedFrom).toEqual({ runId: id, stepId: 'model-2' })
    const long = await fixture.call<Run>('POST', '/v1/runs', {
      agentName: 'worker',
      input: { prompt: '/call wait {"seconds":60}' },
    })
    await expect
      .poll(async () => (await say('runs', 'get', long.id)).out)
      .toMatch(/waits for +timer, until about \d{4}-/)
    expect((await say('runs', 'cancel', long.id, '--reason', 'enough')).out).toBe(`${long.id} cancelled\n`)
    expect((await say('runs', 'get', long.id)).out).toMatch(/cancelled +enough/)
    expect((await say('runs', 'retry', long.id)).out).toMatch(/^\S+ (queued|running)\n$/)
    expect((await say('runs', 'delete', id)).out).toBe(`${id} deleted\n`)
    expect(await say('runs', 'get', id)).toMatchObject({ code: 1, err: expect.stringContaining(id) })
  })
})

describe('runtime agents', () => {
  it('prints what apply takes, says what changed between versions, and goes back', async () => {
    const file = join(fixture.folder, 'round.yaml')
    await writeFile(file, 'name: round\ndescription: first\nmanifest:\n  systemPrompt: Be brief.\n  tools: [wait]\n')
    await say('agents', 'apply', file)
    const [first] = await json<{ id: string }[]>('agents', 'versions', 'round')
    await writeFile(file, 'name: round\ndescription: first\nmanifest:\n  systemPrompt: Be long.\n')
    await say('agents', 'apply', file)
    const diff = await say('agents', 'diff', 'round', first!.id)
    expect(diff.out.split('\n').filter(line => line.includes('systemPrompt'))).toEqual([
      '- systemPrompt: "Be brief."',
      '+ systemPrompt: "Be long."',
    ])
    expect((await say('agents', 'promote', 'round', first!.id)).out).toBe(`round uses ${first!.id}\n`)
    expect((await say('agents', 'diff', 'round', first!.id)).out).toBe('nothing differs\n')
    await writeFile(file, (await say('agents', 'get', 'round')).out)
    expect((await say('agents', 'apply', file)).out).toMatch(/^round {2}unchanged/)
    expect((await say('agents', 'delete', 'round')).code).toBe(0)
    expect((await say('agents', 'list', '--quiet')).out).toBe('worker\n')
  })

  it('compares members by their path', () => {
    expect(differences({ a: 1, b: { c: [1], d: 2 } }, { b: { c: [2], d: 2 }, e: null })).toEqual([
      { path: 'a', before: 1, after: undefined },
      { path: 'b.c', before: [1], after: [2] },
      { path: 'e', before: undefined, after: null },
    ])
  })
})

describe('money, schedules and sessions', () => {
  it('sets the limits that are given and keeps the others', async () => {
    expect((await say('budgets', 'set', 'worker', '--usd-per-day', '$5', '--notify-at', '50')).code).toBe(0)
    const set = await say('budgets', 'set', 'worker', '--usd-per-run', '0.25', '--at-limit', 'notify')
    expect(set.out).toMatch(/USD per day +5\nUSD per run +0\.25\n/)
    expect(set.out).toMatch(/at the limit +notify\nnotify at +50 %\n/)
    expect((await say('budgets', 'set', 'worker', '--usd-per-day', 'none')).out).toMatch(/USD per day +no limit\n/)
    expect(await say('budgets', 'set', 'worker')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--usd-per-day 5'),
    })
    expect(await say('budgets', 'set', 'worker', '--usd-per-day', 'lots')).toMatchObject({ code: 2 })
    expect(rowsOf((await say('budgets', 'list')).out)[1]![0]).toBe('worker')
    expect((await say('budgets', 'delete', 'worker')).out).toBe('worker has no budget\n')
    expect(rowsOf((await say('usage', '--by', 'agent')).out)[1]![0]).toBe('worker')
  })

  it('makes a schedule that runs, fires and rests', async () => {
    const made = await say(
      'schedules',
      'create',
      'worker',
      '0 7 * * *',
      '--timezone',
      'Europe/Berlin',
      '--prompt',
      'hello',
    )
    expect(made.out).toMatch(/^\S+ fires next at \d{4}-/)
    const id = made.out.split(' ')[0]!
    expect((await say('schedules', 'run', id)).out).toMatch(/^\S+ (queued|running|succeeded)\n$/)
    expect((await say('schedules', 'pause', id)).out).toBe(`${id} paused\n`)
    expect(rowsOf((await say('schedules', 'list')).out)[1]).toContain('paused')
    expect((await say('schedules', 'resume', id)).out).toBe(`${id} resumed\n`)
    expect((await say('schedules', 'fires', id)).code).toBe(0)
    expect((await say('schedules', 'delete', id)).out).toBe(`${id} deleted\n`)
    expect(await say('schedules', 'create', 'worker', 'soon')).toMatchObject({ code: 1 })
  })

  it('reads and ends a conversation', async () => {
    const { id } = await fixture.call<{ id: string }>('POST', '/v1/sessions', { agentName: 'worker' })
    await fixture.call('POST', `/v1/sessions/${id}/messages`, { content: 'good day' })
    expect((await say('sessions', 'get', id)).out).toMatch(/^── user .*\ngood day\n── assistant /)
    expect((await say('sessions', 'stop', id)).out).toBe(`${id} stopped\n`)
    expect(rowsOf((await say('sessions', 'list', '--status', 'stopped')).out)[1]![0]).toBe(id)
    expect((await say('sessions', 'delete', id)).code).toBe(0)
  })
})

describe('access to others', () => {
  it('takes a secret from standard input only', async () => {
    expect((await fixture.runWith('s3cret\n', 'secrets', 'set', 'token', '--hosts', 'api.example:443')).out).toBe(
      'token kept\n',
    )
    expect(rowsOf((await say('secrets', 'list')).out)[1]).toEqual([
      'token',
      expect.any(String),
      'api.example:443',
      'any',
    ])
    expect(await fixture.runWith('', 'secrets', 'set', 'token')).toMatchObject({
      code: 2,
      err: expect.stringContaining('empty'),
    })
    expect((await say('secrets', 'delete', 'token')).code).toBe(0)
    const kept = await fixture.runWith(
      'sk-test-0123456789',
      'providers',
      'set',
      'anthropic',
      '--base-url',
      'http://127.0.0.1:9',
    )
    expect(kept.out).toMatch(/^anthropic kept/)
    expect((await say('providers', 'list')).out).not.toContain('sk-test')
    expect((await say('providers', 'delete', 'anthropic')).code).toBe(0)
  })

  it('makes, tests and removes a webhook, and enrols a node', async () => {
    const made = await say('webhooks', 'create', 'http://127.0.0.1:9/hook', '--events', 'run.failed, budget.exceeded')
    expect(made.out).toMatch(/^\S+\nsecret {2}whsec_/)
    const id = made.out.split('\n')[0]!
    expect((await say('webhooks', 'list')).out).toContain('run.failed, budget.exceeded')
    expect(await say('webhooks', 'test', id)).toMatchObject({ code: 1, out: expect.stringMatching(/^failed {2}/) })
    expect((await say('webhooks', 'deliveries', id)).code).toBe(0)
    expect((await say('webhooks', 'delete', id)).code).toBe(0)
    expect((await say('webhooks', 'create', 'http://127.0.0.1:9', '--events', 'run.faild')).err).toContain(
      'did you mean run.failed?',
    )
    expect(rowsOf((await say('connectors', 'catalog')).out).length).toBeGreaterThan(17)
  })
})

describe('runtime login', () => {
  let home: string
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'waybill-login-'))
  })
  afterAll(() => rm(home, { recursive: true, force: true }))
  const here = (input: string, ...args: string[]) =>
    typed(runtimeProgram, args, { env: { XDG_CONFIG_HOME: home }, input })

  it('keeps a key that works where no other account reads it, and every command uses it', async () => {
    const url = fixture.env().PLATFORM_URL
    expect(await here('', 'agents', 'list')).toMatchObject({ code: 2, err: expect.stringContaining('runtime login') })
    expect(await here('wb_live_wrong', 'login', '--url', url)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^Nothing was kept/),
    })
    expect(await here('x', 'login', '--url', 'http://127.0.0.1:1')).toMatchObject({ code: 3 })
    expect((await here(`${KEY}\n`, 'login', '--url', url, '--name', 'test')).out).toBe('test is kept and in use\n')
    const file = join(home, 'waybill', 'contexts.json')
    expect(((await stat(file)).mode & 0o777).toString(8)).toBe('600')
    expect((await here('', 'agents', 'list', '--quiet')).out).toBe('worker\n')
    expect((await here('', 'open', '--print', 'abc')).out).toBe(`${url}/runs/abc\n`)
    expect(rowsOf((await here('', 'contexts', 'list')).out)[1]).toEqual(['test', url, 'yes'])
    expect(await here('', 'contexts', 'use', 'nothing')).toMatchObject({
      code: 2,
      err: 'There is no "nothing": kept are test.\n',
    })
    expect((await here('', 'logout')).out).toBe('test is forgotten\n')
    expect(await readFile(file, 'utf8')).not.toContain(KEY)
    await writeFile(file, '{"contexts":[')
    expect(await here('', 'agents', 'list')).toMatchObject({ code: 2, err: expect.stringContaining('does not read') })
  })
})

it('a terminal is given no control characters of an agent', async () => {
  await fixture.call('POST', '/v1/agents', { name: 'sly', description: 'a\u001b[31mb\u202ec', manifest: {} })
  const { out } = await atTerminal(['agents', 'list'], fixture.env())
  expect(out).toContain('a[31mbc')
})

it('a run that is watched says that it waits for the rate limit of its provider', async () => {
  const remote = await scriptedUpstream()
  const body = JSON.stringify({ error: { message: 'slow down', code: 'rate_limit_exceeded' } })
  remote.queue(answer(429, body, { 'retry-after': '5' }))
  remote.always(stream(chatFrames(['fine'], { usage: true })))
  const provider = { provider: 'openai', apiKey: 'k', baseUrl: remote.origin }
  await fixture.call('POST', '/v1/settings/llm-providers', provider)
  await fixture.call('POST', '/v1/agents', { name: 'limited', manifest: { model: 'openai/gpt-x' } })
  const { id } = await fixture.call<Run>('POST', '/v1/runs', { agentName: 'limited' })
  await expect.poll(() => fixture.call('GET', `/v1/runs/${id}/journal`).then(JSON.stringify)).toContain('step_retrying')
  const { code, err } = await say('run', 'limited', 'hello')
  expect(code).toBe(0)
  expect(err.match(/WAITS for the rate limit of its provider; next call \S+ \S+Z\n/g)).toHaveLength(1)
  await remote.close()
})
