import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { serve } from '@hono/node-server'
import { rolldown } from 'rolldown'
import { afterEach, describe, expect, expectTypeOf, it } from 'vitest'
import { clientOperations } from '../scripts/client/client-operations.ts'
import { ClientError, type RuntimeClient, routerClient, runtimeClient } from '../shared/client/client.ts'
import type { AgentItem } from '../shared/wire/runtime/agent.ts'
import type { JournalExport } from '../shared/wire/runtime/journal.ts'
import type { Run } from '../shared/wire/runtime/run.ts'
import { expectWithin } from './crowding.ts'
import { api, KEY } from './runtime/api.ts'

const open: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

/** A runtime on a socket, and a client of it. */
async function started(more: { retries?: number; fetch?: typeof fetch } = {}) {
  const { runtime, close } = await api({ masterKey: new Uint8Array(32).fill(7) })
  open.push(close)
  const { url, stop } = await listening(request => runtime.fetch(request))
  open.push(stop)
  const client = runtimeClient({ url, key: KEY, ...more })
  return { client, url, runtime }
}

async function listening(fetch: (request: Request) => Promise<Response> | Response) {
  const server = await new Promise<ReturnType<typeof serve>>(resolve => {
    const made: ReturnType<typeof serve> = serve({ fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(made))
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: () => new Promise<void>(resolve => server.close(() => resolve())),
  }
}

const worker: { name: string; manifest: { tools: 'ask_human'[] } } = {
  name: 'worker',
  manifest: { tools: ['ask_human'] },
}

describe('the client of a runtime', () => {
  it('has the types of the operations', () => {
    expectTypeOf<ReturnType<RuntimeClient['runs']['create']>>().toEqualTypeOf<Promise<Run>>()
    expectTypeOf<ReturnType<RuntimeClient['agents']['list']['each']>>().toEqualTypeOf<AsyncGenerator<AgentItem>>()
    expectTypeOf<ReturnType<RuntimeClient['runs']['journal']['each']>>().toEqualTypeOf<
      AsyncGenerator<JournalExport['events'][number]>
    >()
    expectTypeOf<ReturnType<RuntimeClient['agents']['remove']>>().toEqualTypeOf<Promise<void>>()
    expectTypeOf<RuntimeClient['access']>().not.toHaveProperty('me')
    expectTypeOf<RuntimeClient['runs']['get']>().parameter(0).toExtend<{ params: { id: string } }>()
  })

  it('makes an agent, runs it, follows the run to its end, and reads its receipt', async () => {
    const { client } = await started()
    const agent = await client.agents.create({ body: worker })
    expect(agent).toMatchObject({ name: 'worker', version: 1 })
    const { id } = await client.runs.create({ body: { agentName: 'worker', input: { prompt: 'hello' } } })
    const kinds: string[] = []
    for await (const { event, data } of client.runs.events({ params: { id } })) {
      kinds.push(event)
      expect(data.kind).toBe(event)
    }
    expect([kinds[0], kinds.at(-1)]).toEqual(['step_started', 'step_completed'])
    expect((await client.runs.get({ params: { id } })).status).toBe('succeeded')
    const { payload } = await client.receipts.get({ params: { id } })
    expect(payload.runId).toBe(id)
    expect((await client.operations.healthz()).status).toBe('ok')
    expect(await client.operations.metrics()).toContain('waybill_')
  })

  it('walks a list over its pages, and takes the parameters of a query', async () => {
    const { client } = await started()
    for (let n = 0; n < 5; n++) await client.agents.create({ body: { ...worker, name: `agent-${n}` } })
    const names: string[] = []
    for await (const { name } of client.agents.list.each({ query: { limit: 2 } })) names.push(name)
    expect(names.toSorted()).toEqual(['agent-0', 'agent-1', 'agent-2', 'agent-3', 'agent-4'])
    expect(await client.agents.list({ query: { limit: 2 } })).toHaveLength(2)
    await client.agents.remove({ params: { name: 'agent-3' } })
    expect(await client.agents.list()).toHaveLength(4)
  })

  it('walks a journal line by line, and takes none that is cut for a whole one', async () => {
    let cut = (answer: Response): Response => answer
    const { client } = await started({ retries: 0, fetch: async (input, init) => cut(await fetch(input, init)) })
    await client.agents.create({ body: worker })
    const prompt = 'é'.repeat(100_000)
    const { id } = await client.runs.create({ body: { agentName: 'worker', input: { prompt } } })
    for await (const _ of client.runs.events({ params: { id } }));
    const walked = async () => {
      const events = []
      for await (const event of client.runs.journal.each({ params: { id } })) events.push(event)
      return events
    }
    const { events } = await client.runs.journal({ params: { id } })
    expect(await walked()).toEqual(events)
    const cutAt = (bytes: number, how: 'close' | 'error') => (answer: Response) => {
      const ended = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, stream) {
          if (chunk.length >= bytes) stream.enqueue(chunk.subarray(0, bytes))
          if (how === 'close') stream.terminate()
          else stream.error(new TypeError('the connection broke'))
        },
      })
      return new Response(answer.body?.pipeThrough(ended), answer)
    }
    for (const how of ['close', 'error'] as const) {
      cut = cutAt(100, how)
      await expect(walked()).rejects.toThrow(new ClientError('the answer broke off'))
    }
    cut = () => Response.json({ runId: id, events })
    await expect(walked()).rejects.toThrow(/^the answer has no lines \(application\/json/)
  })

  it('says why it was refused', async () => {
    const { client, url } = await started()
    const unknown = await client.agents.get({ params: { name: 'a/b c' } }).catch((error: unknown) => error)
    expect(unknown).toBeInstanceOf(ClientError)
    expect(unknown).toMatchObject({ status: 404, code: 'not_found', message: 'agent not found: a/b c' })
    expect(unknown).toMatchObject({ requestId: expect.stringMatching(/^[\w.-]+$/) })
    await expect(client.agents.create({ body: { name: '' } })).rejects.toMatchObject({
      status: 400,
      code: 'validation_failed',
      details: [{ path: 'name' }],
    })
    await expect(runtimeClient({ url, key: 'wb_live_x' }).agents.list()).rejects.toMatchObject({ status: 401 })
    await expect(runtimeClient({ url: 'http://127.0.0.1:9', retries: 0 }).agents.list()).rejects.toMatchObject({
      status: undefined,
      message: 'http://127.0.0.1:9 does not answer',
    })
  })

  it('asks for nothing where its path lacks a parameter', async () => {
    let asked = 0
    const send: typeof fetch = async () => {
      asked++
      return Response.json({})
    }
    const client = runtimeClient({ url: 'http://runtime', key: KEY, fetch: send })
    // As plain JavaScript may call it.
    const params = { run: 'x' } as unknown as { id: string }
    await expect(client.runs.cancel({ params })).rejects.toThrow(/^\/v1\/runs\/\{id\}\/cancel needs params\.id$/)
    await expect(client.runs.get({ params })).rejects.toThrow(TypeError)
    expect(asked).toBe(0)
  })

  it('makes one run of a call whose answer was lost, and does nothing twice that may not be', async () => {
    let lost = 0
    const losing: typeof fetch = async (input, init) => {
      const answer = await fetch(input, init)
      if (init?.method === 'GET' || lost++ > 0) return answer
      await answer.body?.cancel()
      throw new TypeError('the connection broke')
    }
    const { client, url } = await started({ fetch: losing })
    const direct = runtimeClient({ url, key: KEY })
    await direct.agents.create({ body: worker })
    const run = await client.runs.create({ body: { agentName: 'worker', input: { prompt: 'x' } } })
    expect((await direct.runs.list()).map(({ id }) => id)).toEqual([run.id])
    lost = 0
    await expect(client.runs.cancel({ params: { id: run.id } })).rejects.toMatchObject({ status: undefined })
    expect(lost).toBe(1)
  })

  it('goes on with a stream that was cut, behind the last event', async () => {
    const { client, url } = await started()
    await client.agents.create({ body: worker })
    const { id } = await client.runs.create({
      body: { agentName: 'worker', input: { prompt: '/call ask_human {"prompt":"sure?"}' } },
    })
    let connections = 0
    const cutting: typeof fetch = async (input, init) => {
      if (String(input).includes('/events') && ++connections === 2) throw new TypeError('refused')
      const answer = await fetch(input, init)
      if (!String(input).includes('/events') || !answer.body) return answer
      return connections > 3 ? answer : new Response(cutAfter(answer.body, 1500), answer)
    }
    const seqs: number[] = []
    let unanswered = 0
    const cut = runtimeClient({ url, key: KEY, fetch: cutting, retries: 0 })
    const decided = (async () => {
      for (;;) {
        const [asked] = await client.approvals.ofRun({ params: { id } })
        if (asked) return client.approvals.approve({ params: { id: asked.id }, body: { output: 'yes' } })
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    })()
    const onUnanswered = () => void unanswered++
    for await (const { data } of cut.runs.events({ params: { id } }, { onUnanswered })) seqs.push(data.seq)
    await decided.catch(() => undefined)
    const { events } = await client.runs.journal({ params: { id } })
    expect(seqs).toEqual(events.map(({ seq }) => seq))
    expect([connections > 2, unanswered]).toEqual([true, 1])
  })

  it('ends with the run that it follows, goes on behind an event, and only replays when that is asked', async () => {
    const { client } = await started()
    await client.agents.create({ body: worker })
    const { id } = await client.runs.create({ body: { agentName: 'worker', input: { prompt: 'x' } } })
    const read = async (...given: Parameters<typeof client.runs.events>) => {
      const seqs: number[] = []
      for await (const { data } of client.runs.events(...given)) seqs.push(data.seq)
      return seqs
    }
    const params = { id }
    const seqs = await read({ params })
    const before = performance.now()
    expect(await read({ params })).toEqual(seqs)
    expect(await read({ params }, { lastEventId: String(seqs[0]) })).toEqual(seqs.slice(1))
    expect(await read({ params }, { lastEventId: String(seqs.at(-1)) })).toEqual([])
    const { id: open } = await client.runs.create({
      body: { agentName: 'worker', input: { prompt: '/call ask_human {"prompt":"sure?"}' } },
    })
    await expect.poll(async () => (await client.approvals.ofRun({ params: { id: open } })).length).toBe(1)
    expect((await read({ params: { id: open }, query: { live: 'false' } })).length).toBeGreaterThan(1)
    expectWithin(performance.now() - before, 1400)
  })

  it('reads again where an answer was cut or a proxy found nothing behind it, and says so as its own error', async () => {
    let asked = 0
    const sent: typeof fetch = async () => {
      asked++
      if (asked === 1) return new Response('<html>Bad Gateway', { status: 502 })
      const whole = Response.json([])
      return asked % 2 === 0 && whole.body !== null ? new Response(cutAfter(whole.body, 0)) : whole
    }
    expect(await runtimeClient({ url: 'http://runtime', fetch: sent }).agents.list()).toEqual([])
    expect(asked).toBe(3)
    const once = runtimeClient({ url: 'http://runtime', fetch: sent, retries: 0 })
    await expect(once.agents.list()).rejects.toMatchObject({ name: 'ClientError', status: undefined })
  })

  it('opens a stream again while a service or the proxy before it is away', async () => {
    const events = (from: number) =>
      new Response(`id: ${from}\nevent: step_started\ndata: {"seq":${from}}\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      })
    const refusals = [502, 503, 504].map(status => new Response('away', { status }))
    const answers = [events(1), ...refusals, events(2), new Response(null, { status: 204 })]
    const resumed: (string | null)[] = []
    const sent: typeof fetch = async (_, init) => {
      resumed.push(new Headers(init?.headers).get('last-event-id'))
      return answers.shift() ?? new Response('gone', { status: 404 })
    }
    const client = runtimeClient({ url: 'http://runtime', retries: 0, fetch: sent })
    const seqs: number[] = []
    let unanswered = 0
    const onUnanswered = () => void unanswered++
    const stream = client.runs.events({ params: { id: 'run_1' } }, { onUnanswered })
    for await (const { data } of stream) seqs.push(data.seq)
    expect(seqs).toEqual([1, 2])
    expect(resumed).toEqual([null, '1', '1', '1', '1', '2'])
    expect(unanswered).toBe(3)
    await expect(client.runs.events({ params: { id: 'run_1' } }).next()).rejects.toMatchObject({ status: 404 })
  })

  it('waits as long as the service says, and ends when its caller does', async () => {
    let asked = 0
    const { url, stop } = await listening(() => {
      asked++
      return Response.json({ error: 'stopping', code: 'draining' }, { status: 503, headers: { 'retry-after': '1' } })
    })
    open.push(stop)
    const before = performance.now()
    const client = runtimeClient({ url, retries: 1 })
    await expect(client.agents.list()).rejects.toMatchObject({ code: 'draining' })
    expect(performance.now() - before).toBeGreaterThan(900)
    expect(asked).toBe(2)
    await expect(client.agents.list({}, { signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
      name: 'TimeoutError',
    })
  })
})

it('ends with its signal a call and a stream of a runtime in the same process', async () => {
  const { runtime, close } = await api({ masterKey: new Uint8Array(32).fill(7) })
  open.push(close)
  const fetch: typeof globalThis.fetch = async (input, init) => runtime.fetch(new Request(input, init))
  const client = runtimeClient({ url: 'http://runtime', key: KEY, fetch })
  await client.agents.create({ body: { name: 'waiter', manifest: { tools: ['wait'] } } })
  const prompt = '/call wait {"seconds":60}'
  const { id } = await client.runs.create({ body: { agentName: 'waiter', input: { prompt } } })
  const left = new AbortController()
  const follow = async () => {
    for await (const { data } of client.runs.events({ params: { id } }, { signal: left.signal }))
      if (data.stepId === 'timer-1-1') left.abort()
  }
  await expect(follow()).rejects.toMatchObject({ name: 'AbortError' })
  const { id: session } = await client.sessions.create({ body: { agentName: 'waiter' } })
  const message = { params: { id: session }, body: { content: prompt } }
  await expect(client.sessions.message(message, { signal: AbortSignal.timeout(300) })).rejects.toMatchObject({
    name: 'TimeoutError',
  })
})

it('is at most 15 kB when it is compressed, and needs nothing that a browser lacks', async () => {
  const bundle = await rolldown({
    input: new URL('../shared/client/client.ts', import.meta.url).pathname,
    platform: 'browser',
    onLog(level, log) {
      throw new Error(`${level}: ${log.message}`)
    },
  })
  const { output } = await bundle.generate({ minify: true })
  await bundle.close()
  expect(output).toHaveLength(1)
  expect(output[0].imports).toEqual([])
  const bytes = gzipSync(output[0].code).byteLength
  expect(bytes).toBeLessThan(15_000)
  expect(bytes).toBeGreaterThan(1000)
})

it('calls every operation that the services declare', () => {
  const written = readFileSync(new URL('../shared/client/operations.gen.ts', import.meta.url), 'utf8')
  expect(written, 'npm run generate writes it').toBe(clientOperations())
})

it('reads the refusals of a router in whatever form they come', async () => {
  const { url, stop } = await listening(request =>
    Response.json(
      new URL(request.url).pathname === '/-/traces'
        ? { error: { type: 'unauthorized', message: 'send your router key' } }
        : { error: 'no' },
      { status: 401 },
    ),
  )
  open.push(stop)
  const client = routerClient({ url, key: 'k' })
  await expect(client.audit.traces()).rejects.toMatchObject({ code: 'unauthorized', message: 'send your router key' })
})

/** A body whose connection breaks after so many bytes. */
function cutAfter(body: ReadableStream<Uint8Array>, bytes: number): ReadableStream<Uint8Array> {
  let left = bytes
  return body.pipeThrough(
    new TransformStream({
      transform(chunk, stream) {
        if (left <= 0) return stream.error(new TypeError('terminated'))
        stream.enqueue(chunk.subarray(0, left))
        left -= chunk.byteLength
      },
    }),
  )
}
