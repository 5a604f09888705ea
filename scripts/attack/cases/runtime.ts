import { setTimeout as wait } from 'node:timers/promises'
import type { Arena, Tenant } from '../arena.ts'
import { type Attack, type Attempt, statusOf, unless } from '../attempt.ts'
import { answered, completion, type Says } from '../far-end.ts'

let names = 0

/** Has an agent of this tenant run once against its own provider, and waits until it ends, at most so long. */
async function ran(
  { remote }: Arena,
  tenant: Tenant,
  says: Says | string,
  manifest: object,
  ms = 20_000,
): Promise<string> {
  const path = `/provider-${++names}`
  remote.say(path, says)
  const settings = { provider: 'openai-compatible', apiKey: 'sk-of-mallory', baseUrl: remote.origin + path }
  await tenant.json('POST', '/v1/settings/llm-providers', settings)
  const name = `agent-${names}`
  await tenant.json('POST', '/v1/agents', {
    name,
    manifest: { model: 'openai-compatible/m', outputRepairs: 0, retry: { maxAttempts: 1 }, ...manifest },
  })
  const { id } = await tenant.json<{ id: string }>('POST', '/v1/runs', { agentName: name, input: { prompt: 'x' } })
  const end = performance.now() + ms
  for (;;) {
    const { status } = await tenant.json<{ status: string }>('GET', `/v1/runs/${id}`)
    if (!['queued', 'running'].includes(status) || performance.now() > end) return status
    await wait(50)
  }
}

const over = (status: string) =>
  ['succeeded', 'failed', 'waiting'].includes(status) ? undefined : `the run is ${status}`
const text = (length: number) => `${'a'.repeat(length)}!`
const doubling = Object.fromEntries(
  Array.from({ length: 60 }, (_, n) => [
    `d${n}`,
    { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
  ]),
)

const SCHEMAS: Record<string, { schema: object; value: unknown }> = {
  'a pattern that goes back': { schema: { properties: { x: { pattern: '^(a+)+$' } } }, value: { x: text(60) } },
  'a long text for a pattern': { schema: { properties: { x: { pattern: '^(a|a)*$' } } }, value: { x: text(200_000) } },
  'names that match a pattern': { schema: { patternProperties: { '^(a+)+$': false } }, value: { [text(5000)]: 1 } },
  'items that differ': {
    schema: { properties: { x: { uniqueItems: true } } },
    value: { x: Array.from({ length: 60_000 }, (_, n) => ({ n })) },
  },
  'references that double': { schema: { $ref: '#/$defs/d0', $defs: { ...doubling, d60: {} } }, value: {} },
  'a schema that comes back to itself': { schema: { properties: { x: { $ref: '#' } } }, value: { x: {} } },
}

const schemas: Attempt[] = Object.entries(SCHEMAS).map(([name, { schema, value }]) => ({
  name,
  run: async here =>
    over(
      await ran(here, here.mallory, completion({ content: JSON.stringify(value) }), {
        outputSchema: { type: 'object', ...schema },
      }),
    ),
}))

const frames =
  (each: string, everyMs: number): Says =>
  socket => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
    const timer = setInterval(() => socket.write(each), everyMs)
    socket.on('close', () => clearInterval(timer))
  }
const call = (n: number) => ({ id: `c${n}`, type: 'function', function: { name: 'wait', arguments: '{"seconds":0}' } })

const PROVIDERS: Record<string, { says: Says | string; manifest?: object }> = {
  'fifty thousand calls in one answer': {
    says: completion({ content: null, tool_calls: Array.from({ length: 50_000 }, (_, n) => call(n)) }),
    manifest: { tools: ['wait'] },
  },
  'an answer of forty megabytes': { says: completion({ content: 'x'.repeat(40 << 20) }) },
  'an answer nested 100,000 deep': { says: answered(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) },
  'two hundred thousand choices': {
    says: completion(
      {},
      { choices: Array.from({ length: 200_000 }, (_, index) => ({ index, message: { content: 'x' } })) },
    ),
  },
  'usage below zero': { says: completion({}, { usage: { prompt_tokens: -1e9, completion_tokens: 1.5 } }) },
  'a name of 100,000 characters': { says: completion({}, { model: 'm'.repeat(100_000) }) },
  'a redirect to an inner address': {
    says: 'HTTP/1.1 302 Found\r\nlocation: http://127.0.0.2/\r\ncontent-length: 0\r\n\r\n',
  },
}

const providers: Attempt[] = [
  ...Object.entries(PROVIDERS).map(([name, { says, manifest = {} }]) => ({
    name,
    run: async (here: Arena) => over(await ran(here, here.mallory, says, manifest)),
  })),
  {
    name: 'twenty runs that never say a word, and one of another tenant',
    async run(here) {
      const { mallory, victim, remote } = here
      remote.say('/silent', frames(': ping\n\n', 200))
      await mallory.json('POST', '/v1/settings/llm-providers', {
        provider: 'openai-compatible',
        apiKey: 'sk',
        baseUrl: `${remote.origin}/silent`,
      })
      const name = `silent-${++names}`
      await mallory.json('POST', '/v1/agents', { name, manifest: { model: 'openai-compatible/m' } })
      const runs = await Promise.all(
        Array.from({ length: 20 }, () =>
          mallory.json<{ id: string }>('POST', '/v1/runs', { agentName: name, input: {} }),
        ),
      )
      await wait(500)
      const echo = `echo-${names}`
      await victim.json('POST', '/v1/agents', { name: echo, manifest: { model: 'demo/echo' } })
      const { id } = await victim.json<{ id: string }>('POST', '/v1/runs', { agentName: echo, input: { prompt: 'x' } })
      let status = ''
      for (let looks = 0; looks < 200 && status !== 'succeeded'; looks++) {
        ;({ status } = await victim.json<{ status: string }>('GET', `/v1/runs/${id}`))
        await wait(50)
      }
      await Promise.all(runs.map(run => statusOf(mallory.call('POST', `/v1/runs/${run.id}/cancel`, {}))))
      return status === 'succeeded' ? undefined : `the other tenant's run is ${status} after 10 s`
    },
  },
]

const start = 'openapi: 3.0.0\ninfo: {title: a, version: "1"}\n'
const DOCUMENTS: Record<string, string> = {
  'sixty thousand keys': start + Array.from({ length: 60_000 }, (_, n) => `k${n}: 1\n`).join(''),
  'half a megabyte of quotes': start + '"'.repeat(500_000),
  'a flow map without an end': `${start}x: {${'a: b, '.repeat(80_000)}`,
  'aliases that double': `${start}a0: &a0 [x, x]\n${Array.from({ length: 40 }, (_, n) => `a${n + 1}: &a${n + 1} [*a${n}, *a${n}]\n`).join('')}`,
  'deep nesting': start + Array.from({ length: 1000 }, (_, n) => `${' '.repeat(n)}a:\n`).join(''),
  'a merge of itself': `${start}a: &a\n  <<: *a\n`,
  brackets: `${start}x: ${'['.repeat(200_000)}`,
}
const documents: Attempt[] = Object.entries(DOCUMENTS).map(([name, document]) => ({
  name,
  async run({ owner }) {
    const body = { connectorId: `http-own-${++names}`, openapi: document, config: { baseUrl: 'https://api.example' } }
    const status = await statusOf(owner.call('POST', '/v1/connectors/install', body))
    return status >= 500 ? `answered ${status}` : undefined
  },
}))

/** What a body may hold: a larger one is refused while it is still sent, which its sender may see as a broken connection. */
const LIMIT = 1_048_576
const bodies: Attempt[] = [
  ['runs', '/v1/runs'],
  ['forecast', '/v1/runs/forecast'],
  ['agents', '/v1/agents'],
  ['schedules', '/v1/schedules'],
].flatMap(([name = '', path = '']) =>
  [
    ['arrays', (n: number) => `${'['.repeat(n)}${']'.repeat(n)}`] as const,
    ['objects', (n: number) => `${'{"a":'.repeat(n)}1${'}'.repeat(n)}`] as const,
    ['forty thousand keys', () => `{${Array.from({ length: 40_000 }, (_, n) => `"k${n}":1`).join()}}`] as const,
    ['one long number', () => `${'9'.repeat(LIMIT / 4)}`] as const,
  ].map(([what, made]) => ({
    name: `${what} for ${name}`,
    async run({ mallory }: Arena) {
      const inside = made(5000)
      const body = `{"agentName":"none","name":"deep","input":${inside},"manifest":${inside}}`
      const status = await statusOf(mallory.call('POST', path, body))
      return status >= 500 ? `answered ${status}` : undefined
    },
  })),
)

const padding: Attempt = {
  name: 'an attachment that is padding alone',
  async run({ mallory }) {
    await mallory.call('POST', '/v1/agents', { name: 'padded', manifest: { model: 'demo/echo' } })
    const { id } = await mallory.json<{ id: string }>('POST', '/v1/sessions', { agentName: 'padded' })
    const attachments = [{ name: 'a', mediaType: 'text/plain', data: `${'='.repeat(LIMIT / 2)}A` }]
    return unless(
      [400],
      await statusOf(mallory.call('POST', `/v1/sessions/${id}/messages`, { content: 'x', attachments })),
    )
  },
}

export const runtimeAttacks: readonly Attack[] = [
  { name: 'schemas of strangers', attempts: schemas },
  { name: 'hostile providers', attempts: providers },
  { name: 'documents of strangers', attempts: documents },
  { name: 'bodies', attempts: [...bodies, padding] },
]
