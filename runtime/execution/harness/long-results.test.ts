import { afterEach, describe, expect, it } from 'vitest'
import type { JournalExport } from '../../../shared/wire/runtime/journal.ts'
import { isTerminal, type Run } from '../../../shared/wire/runtime/run.ts'
import { api } from '../../../tests/runtime/api.ts'
import { until } from '../../../tests/runtime/node-fixture.ts'
import { emptyHistory } from '../journal/history.ts'
import type { ModelAnswer, ModelRequest } from '../models/model.ts'
import { cut, readResultTool, roomOf } from './long-results.ts'

let close = async () => {}
afterEach(() => close())

const answer = (more: Partial<ModelAnswer>): ModelAnswer => ({
  text: '',
  toolCalls: [],
  stop: 'end',
  provider: 'test',
  model: 'test/m',
  spent: { tokensIn: 10, tokensOut: 5, costNano: 1 },
  ...more,
})
const call = (name: string, given: Record<string, unknown>) =>
  answer({ toolCalls: [{ id: 'c', name, arguments: given }], stop: 'tools' })

const page = Array.from({ length: 20_000 }, (_, at) => `line ${at + 1} of a page that is rather long, é`).join('\n')

/** A model with a small window that says what it is scripted to, and a page of about a megabyte. */
async function started(script: ModelAnswer[], contextTokens: number) {
  const seen: ModelRequest[] = []
  const on = await api({
    outbound: async () => ({ status: 200, headers: {}, body: new TextEncoder().encode(page), truncated: false }),
    models: {
      find: async () => ({
        id: 'test/m',
        contextTokens,
        async ask(request: ModelRequest) {
          seen.push(structuredClone(request))
          return script.shift() ?? answer({ text: 'done' })
        },
      }),
    },
  })
  close = on.close
  await on.json(201, 'POST', '/v1/agents', {
    name: 'reader',
    manifest: { tools: ['http_request'], egress: [{ host: 'page.example.com' }], limits: { maxOutputTokens: 500 } },
  })
  const { id } = await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'reader', input: { task: 'read it' } })
  const run = await until(async () => {
    const run = await on.json<Run>(200, 'GET', `/v1/runs/${id}`)
    return isTerminal(run.status) && run
  }, 'it ends')
  return { ...on, run, seen }
}

const lengthOf = ({ messages, system, tools }: ModelRequest) => JSON.stringify([messages, system, tools]).length

describe('a result that is too long for the model', () => {
  it('goes to it as a head and a tail, and the rest is read by lines and bytes', async () => {
    const on = await started(
      [
        call('http_request', { url: 'https://page.example.com/' }),
        call('read_result', { result: 'tool-1-1', fromByte: 500_000, bytes: 60 }),
        call('read_result', { result: 'tool-9-9' }),
      ],
      8000,
    )
    expect(on.run).toMatchObject({ status: 'succeeded' })
    // No request is more than the window holds, the way to a summary included.
    for (const request of on.seen) expect(lengthOf(request) / 4).toBeLessThan(8000)
    expect(on.seen[0]!.tools.map(({ name }) => name)).toEqual(['http_request'])
    expect(on.seen[1]!.tools.map(({ name }) => name)).toEqual(['http_request', 'read_result'])
    const said = JSON.stringify(on.seen[1]!.messages)
    expect(said).toMatch(
      /line 1 of a page.*bytes \(.*left out: read_result with result .*tool-1-1.*line 20000 of a page/s,
    )
    expect(JSON.stringify(on.seen[2]!.messages)).toMatch(/fromByte.*500000.*ofBytes.*of a page that/s)
    expect(JSON.stringify(on.seen[3]!.messages)).toContain('there is no result tool-9-9')
  })

  it('is read as the model was given it, without its images', async () => {
    const history = emptyHistory()
    const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const content = [
      { type: 'image', data, mimeType: 'image/png' },
      { type: 'text', text: 'words' },
    ]
    history.steps.set('mcp-1-1', { is: 'completed', attempt: 1, output: { content }, meta: {}, seq: 2 })
    const { call } = readResultTool(history, 1000)
    const { signal } = new AbortController()
    const place = { runId: 'r', stepId: 'tool-2-1', turn: 2, index: 1 }
    const step = { key: 'k', attempt: 1, signal, intent: {}, repeated: false, metered: () => undefined }
    const { output } = await call({ result: 'mcp-1-1' }, place, step)
    const text = '{"content":[{"bytes":70,"mimeType":"image/png","type":"image"},{"text":"words","type":"text"}]}'
    expect(output).toEqual({ fromByte: 0, ofBytes: text.length, text })
  })

  it('is read whole by its digest, by whoever may read the journal', async () => {
    const on = await started([call('http_request', { url: 'https://page.example.com/' })], 128_000)
    const { events } = await on.json<JournalExport>(200, 'GET', `/v1/runs/${on.run.id}/journal`)
    const done = events.find(({ kind, stepId }) => kind === 'step_completed' && stepId === 'tool-1-1')!
    const { $blob } = (done.payload as { output: { $blob: { sha256: string; bytes: number } } }).output
    const whole = await on.call('GET', `/v1/runs/${on.run.id}/blobs/${$blob.sha256}`)
    const text = await whole.text()
    expect([whole.status, whole.headers.get('content-type'), Buffer.byteLength(text)]).toEqual([
      200,
      'application/json',
      $blob.bytes,
    ])
    expect(text).toContain('line 12345 of a page')
    expect(await on.json(404, 'GET', `/v1/runs/${on.run.id}/blobs/${'0'.repeat(64)}`)).toMatchObject({
      error: `output of run ${on.run.id} not found: ${'0'.repeat(64)}`,
    })
    const key = await on.json<{ rawKey: string }>(201, 'POST', '/v1/api-keys', { name: 'x', scopes: ['agents:read'] })
    const refused = await on.call('GET', `/v1/runs/${on.run.id}/blobs/${$blob.sha256}`, undefined, {
      authorization: `Bearer ${key.rawKey}`,
    })
    expect(refused.status).toBe(403)
  })
})

it('the results of one turn share the room that a window has', () => {
  expect([roomOf(8000), roomOf(8000, 100), roomOf(128_000), roomOf(undefined), roomOf(2_000_000)]).toEqual([
    4800, 2000, 76_800, 76_800, 100_000,
  ])
  expect(cut('short', 'tool-1-1', 2000)).toBe('short')
  expect(cut('😀'.repeat(3000), 'tool-1-1', 2001).isWellFormed()).toBe(true)
})
