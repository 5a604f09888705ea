import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { StepRequest } from '../../shared/wire/runtime/step-request.ts'
import { expectWithin } from '../crowding.ts'
import { answer, stream } from '../upstream/scripted.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: ProviderFixture[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function fixture(options: Parameters<typeof providerFixture>[0] = {}): Promise<ProviderFixture> {
  const made = await providerFixture(options)
  open.push(made)
  await made.configure('openai')
  return made
}

/** The longest time that timers had to wait while something was done. */
async function standstill(act: () => Promise<unknown>): Promise<number> {
  let most = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    most = Math.max(most, now - last)
    last = now
  }, 5)
  await act()
  clearInterval(timer)
  return Math.max(most, performance.now() - last)
}

const BYTES = 4_000_000
const json = (body: string) => answer(200, body, { 'content-type': 'application/json' })
const many = (one: string) =>
  Array<string>(Math.floor(BYTES / (one.length + 1)))
    .fill(one)
    .join(',')
const usage = '"usage":{"prompt_tokens":1,"completion_tokens":1}'
const said = '{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"done"}}'
const call = (at: number) =>
  `{"id":"c${at}","type":"function","function":{"name":"wait","arguments":"{\\"seconds\\":0}"}}`
const calling = (count: number) => {
  const calls = Array.from({ length: count }, (_, at) => call(at)).join(',')
  return `{"model":"gpt-4.1-mini","choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[${calls}]}}],${usage}}`
}

describe('a large answer of a model', () => {
  it.each([
    ['one text', `{"model":"m","choices":[${said.replace('done', 'words '.repeat(BYTES / 6))}],${usage}}`],
    ['many choices', `{"model":"m","choices":[${said},${many('{"index":1,"message":{"content":"a"}}')}],${usage}}`],
    [
      'many members',
      `{"model":"m","more":[${many('{"a\\n":[1],"more":"words that stand in between"}')}],"choices":[${said}],${usage}}`,
    ],
    ['nothing but brackets', `{"model":"m","more":[${many('[]')}],"choices":[${said}],${usage}}`],
  ])('leaves others their turn: %s', async (_what, body) => {
    const { remote, ran } = await fixture()
    remote.queue(json(body))
    const took = await standstill(() => ran('openai/gpt-4.1-mini', { retry: { maxAttempts: 1 } }))
    expectWithin(took, 1000)
  })

  it('is refused where it is over what may be read at once', async () => {
    const { remote, ran } = await fixture()
    remote.queue(json(`{"model":"m","choices":[${said.replace('done', 'x'.repeat(5_000_000))}],${usage}}`))
    const { run } = await ran('openai/gpt-4.1-mini', { retry: { maxAttempts: 1 } })
    expect(run.error?.message).toMatch(/the answer is over 4194304 bytes$/)
  })
})

describe('answers that are more together than the process has room for', () => {
  const frame = (text: string, more = {}) =>
    `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta: { content: text }, ...more }] })}\n\n`

  it('cost the longest of them, at once, and no other', async () => {
    const { remote, ran, json: get } = await fixture({ answerBytesAtATime: 2_000_000 })
    let gone: Promise<void> | undefined
    remote.queue((response, { aborted }) => {
      gone = aborted
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let at = 0; at < 15; at++) response.write(frame('x'.repeat(100_000)))
    })
    const manifest = { model: 'openai/gpt-4.1-mini', retry: { maxAttempts: 1 } }
    await get(201, 'POST', '/v1/agents', { name: 'hog', manifest })
    const { id } = await get<Run>(201, 'POST', '/v1/runs', { agentName: 'hog', input: { prompt: 'Say all.' } })
    await expect.poll(() => remote.seen.length).toBe(1)
    remote.always(stream([...Array<string>(7).fill(frame('y'.repeat(100_000))), frame('', { finish_reason: 'stop' })]))
    await expect
      .poll(async () => {
        const { run } = await ran('openai/gpt-4.1-mini', { retry: { maxAttempts: 1 } })
        expect(run.status).toBe('succeeded')
        return (await get<Run>(200, 'GET', `/v1/runs/${id}`)).error?.message
      })
      .toMatch(/the longest of the answers that are read at a time, which are over 2000000 bytes together$/)
    await gone
  })
})

it('large outputs of runs that end together are stored a few at a time', async () => {
  const db = await openDb(':memory:')
  let most = 0
  const watched: Db = {
    ...db,
    async write(statements) {
      const args = statements.flatMap(one => (typeof one === 'string' ? [] : Object.values(one.args ?? {})))
      const sizeOf = (arg: unknown) => (typeof arg === 'string' || arg instanceof Uint8Array ? arg.length : 0)
      const size = args.reduce<number>((sum, arg) => sum + sizeOf(arg), 0)
      // The first answer is long in being stored: by then the others have come.
      if (most < 1_000_000 && size > 1_000_000) await new Promise(resolve => setTimeout(resolve, 2500))
      most = Math.max(most, size)
      return db.write(statements)
    },
  }
  const { remote, json: get, events } = await fixture({ db: watched })
  remote.always(json(`{"model":"m","choices":[${said.replace('done', 'x'.repeat(3_000_000))}],${usage}}`))
  await get(201, 'POST', '/v1/agents', { name: 'big', manifest: { model: 'openai/gpt-4.1-mini' } })
  const start = () => get<Run>(201, 'POST', '/v1/runs', { agentName: 'big', input: { prompt: 'Say all.' } })
  const started = await Promise.all(Array.from({ length: 10 }, start))
  for (const { id } of started) await (await events(`/v1/runs/${id}/events`)).all()
  for (const { id } of started) expect((await get<Run>(200, 'GET', `/v1/runs/${id}`)).status).toBe('succeeded')
  // Eight megabytes of clear text, as base64, and one run more.
  expect(most).toBeLessThan(18_000_000)
})

it('a large answer is copied for each of its forms and no more', async () => {
  const db = await openDb(':memory:')
  let inJson = 0
  const watched: Db = {
    ...db,
    write(statements) {
      const args = statements.flatMap(one => (typeof one === 'string' ? [] : Object.values(one.args ?? {})))
      inJson += args.filter(arg => typeof arg === 'string' && arg.length > 1_000_000 && arg.startsWith('[')).length
      return db.write(statements)
    },
  }
  const { remote, ran } = await fixture({ db: watched })
  const piece = `data: {"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"${'words '.repeat(10_000)}"}}]}\n\n`
  const end = 'data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
  remote.always(stream([...Array<string>(50).fill(piece), end]))
  const written = vi.spyOn(JSON, 'stringify')
  const encoded = vi.spyOn(TextEncoder.prototype, 'encode')
  onTestFinished(() => void vi.restoreAllMocks())
  const { run } = await ran('openai/gpt-4.1-mini')
  expect(run.status).toBe('succeeded')
  const large = ({ results }: { results: readonly { value: unknown }[] }) =>
    results.filter(
      ({ value }) => (typeof value === 'string' || value instanceof Uint8Array) && value.length > 1_000_000,
    )
  // Its size, what its step gave, what its run gave, and the answer to this reader.
  expect(large(written.mock)).toHaveLength(4)
  // What its step gave, which is hashed and sealed.
  expect(large(encoded.mock)).toHaveLength(1)
  expect(inJson).toBe(0)
})

it('a run with more results than the heap has room for does not hold them', async () => {
  const child = fileURLToPath(new URL('./many-large-results.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--max-old-space-size=80', child])
  const output = { fromByte: 900_000, ofBytes: 1_020_037, text: expect.stringMatching(/words/) }
  expect(JSON.parse(stdout)).toEqual({ status: 'succeeded', output })
})

it('a long journal is read a little at a time, in each of its forms', async () => {
  const db = await openDb(':memory:')
  let most = 0
  const watched: Db = {
    ...db,
    async execute(statement) {
      const found = await db.execute(statement)
      const bodies = found.rows.map(({ body }) => (typeof body === 'string' ? body.length : 0))
      const bytes = bodies.reduce((sum, one) => sum + one, 0)
      most = Math.max(most, bytes)
      if (bytes > 500_000) pageTurns.push(turns)
      return found
    },
  }
  let pageTurns: number[] = []
  let turns = 0
  const aTurn = () => new Promise(resolve => setImmediate(resolve))
  let beat = setImmediate(function next() {
    turns++
    beat = setImmediate(next)
  })
  onTestFinished(() => clearImmediate(beat))
  const { remote, ran, call, json: get, events } = await fixture({ db: watched, copiedBytesAtMost: 1_000_000 })
  const asks = `{"id":"c","type":"function","function":{"name":"http_request","arguments":"{\\"url\\":\\"${remote.origin}/page\\"}"}}`
  const asking = `{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[${asks}]}}`
  let turn = 0
  remote.always((response, seen, request) => {
    if (seen.url === '/page') return answer(200, 'words '.repeat(40_000))(response, seen, request)
    return json(`{"model":"m","choices":[${turn++ < 12 ? asking : said}],${usage}}`)(response, seen, request)
  })
  const egress = [{ host: '127.0.0.1', ports: [Number(new URL(remote.origin).port)] }]
  const { run, steps } = await ran('openai/gpt-4.1-mini', { tools: ['http_request'], egress })
  expect(run.status).toBe('succeeded')
  expect(steps.filter(({ name, status }) => name === 'http_request' && status === 'completed')).toHaveLength(12)
  pageTurns = []
  const path = `/v1/runs/${run.id}/journal`
  const whole = await get<JournalExport>(200, 'GET', path)
  expect(JSON.stringify(whole).length).toBeGreaterThan(2_500_000)
  expect(whole).toMatchObject({ eventCount: whole.events.length, head: whole.events.at(-1)?.hash, sealed: true })
  await aTurn()
  const lines = await (await call('GET', path, undefined, { accept: 'application/x-ndjson' })).text()
  expect(
    lines
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as unknown),
  ).toEqual(whole.events)
  await aTurn()
  const streamed = await (await events(`/v1/runs/${run.id}/events?from_seq=1&live=false`)).all()
  expect(streamed.map(({ id }) => Number(id))).toEqual(whole.events.map(({ seq }) => seq))
  await aTurn()
  const receipt = await get(200, 'GET', `/v1/runs/${run.id}/receipt`)
  expect(await get(200, 'POST', '/v1/runs/receipts/verify', { receipt })).toMatchObject({ valid: true })
  await aTurn()
  const request = await get<StepRequest>(200, 'GET', `/v1/runs/${run.id}/steps/model-13/request`)
  expect(request).toMatchObject({ request: { exact: true }, answer: { text: 'done' } })
  // No request reads two pages in one turn.
  expect(pageTurns.length).toBeGreaterThan(8)
  expect(pageTurns).toEqual([...new Set(pageTurns)])
  const fork = (fromStepId: string) => call('POST', `/v1/runs/${run.id}/fork`, { fromStepId })
  const refused = await fork('model-13')
  expect([refused.status, await refused.json()]).toMatchObject([413, { code: 'payload_too_large' }])
  const short = (await (await fork('model-4')).json()) as Run
  expect(short.forkedFrom).toEqual({ runId: run.id, stepId: 'model-4' })
  const copied = await get<JournalExport>(200, 'GET', `/v1/runs/${short.id}/journal`)
  const given = ({ events }: JournalExport) => events.slice(0, 12).map(({ stepId, payload }) => [stepId, payload])
  expect(given(copied)).toEqual(given(whole))
  expect(most).toBeLessThan(1_100_000)
})

it('a page of runs ends before texts of more than 8 MiB, and leads on to the next', async () => {
  const { remote, ran, call } = await fixture()
  remote.always(json(`{"model":"m","choices":[${said.replace('done', 'x'.repeat(3_000_000))}],${usage}}`))
  const made: string[] = []
  for (let at = 0; at < 5; at++) made.unshift((await ran('openai/gpt-4.1-mini')).run.id)
  const seen: string[][] = []
  for (let path: string | undefined = '/v1/runs?limit=100'; path !== undefined; ) {
    const page = await call('GET', path)
    seen.push(((await page.json()) as Run[]).map(({ id }) => id))
    path = /<(.+)>/.exec(page.headers.get('link') ?? '')?.[1]
  }
  expect(seen.flat()).toEqual(made)
  expect(seen.map(({ length }) => length)).toEqual([3, 2])
})

it('a run without texts, as one of a node, ends no page', async () => {
  const db = await openDb(':memory:')
  const { remote, ran, json: get } = await fixture({ db })
  remote.always(json(`{"model":"m","choices":[${said}],${usage}}`))
  const older = (await ran('openai/gpt-4.1-mini')).run.id
  const newer = (await ran('openai/gpt-4.1-mini')).run.id
  await db.execute({ sql: 'delete from run_data where run_id = ?', args: [older] })
  expect((await get<Run[]>(200, 'GET', '/v1/runs')).map(({ id }) => id)).toEqual([newer, older])
})

describe('many calls in one answer', () => {
  it('are none of them begun where the run has fewer steps left', async () => {
    const { remote, ran, json: get } = await fixture()
    remote.queue(json(calling(20)))
    const { run } = await ran('openai/gpt-4.1-mini', { tools: ['wait'], limits: { maxSteps: 20 } })
    expect(run).toMatchObject({ status: 'failed', error: { code: 'limit_exceeded' } })
    const { events } = await get<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    expect(events.map(({ stepId }) => stepId)).toEqual(['model-1', 'model-1'])
  })

  it('are all made where they are as many as the steps that are left', async () => {
    const { remote, ran } = await fixture()
    remote.queue(json(calling(18)), json(`{"model":"m","choices":[${said}],${usage}}`))
    const { run } = await ran('openai/gpt-4.1-mini', { tools: ['wait'], limits: { maxSteps: 20 } })
    expect(run).toMatchObject({ status: 'succeeded' })
  })

  it('are no answer where they are more than a thousand, and nothing of them is on record', async () => {
    const { remote, ran, json: get } = await fixture()
    remote.queue(json(calling(30_000)))
    const limits = { tools: ['wait'], retry: { maxAttempts: 1 }, limits: { maxSteps: 2000 } }
    const { run } = await ran('openai/gpt-4.1-mini', limits)
    expect(run.error).toMatchObject({
      code: 'model_error',
      message: expect.stringContaining('calls 30000 tools at once'),
    })
    const { events } = await get<JournalExport>(200, 'GET', `/v1/runs/${run.id}/journal`)
    expect(events.map(({ kind }) => kind)).toEqual(['step_started', 'step_failed'])
    expect(JSON.stringify(events).length).toBeLessThan(5000)
  })
})
