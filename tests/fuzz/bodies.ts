import fc from 'fast-check'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import { runtimeEndpoints } from '../../shared/wire/runtime/endpoints.ts'
import { KEY } from '../runtime/api.ts'
import { type ProviderFixture, providerFixture } from '../runtime/provider-fixture.ts'
import { rightCalls } from '../runtime/right-calls.ts'
import { type Target, target } from './target.ts'

interface Bent {
  endpoint: string
  bends: readonly Bend[]
}
/** What is done to one place of a right body: the place is counted over all of its values. */
interface Bend {
  at: number
  how: 'drop' | 'put' | 'twice' | 'add' | 'nest' | 'cut'
  value: unknown
}

/** These wait for a person in a browser, or end what the other cases stand on. */
const LEFT_OUT = new Set(['startMcpOAuth', 'mcp', 'redeliverWebhook', 'logout', 'login', 'setup'])
const bodied = runtimeEndpoints.filter(
  ({ id, method, scopes, path }) =>
    method !== 'GET' && method !== 'DELETE' && scopes !== undefined && !LEFT_OUT.has(id) && path.startsWith('/v1/'),
)

let opened:
  | Promise<{ fixture: ProviderFixture; callOf: (endpoint: Endpoint) => Promise<{ path: string; body?: unknown }> }>
  | undefined
const open = () =>
  (opened ??= providerFixture().then(async fixture => ({ fixture, callOf: await rightCalls(fixture) })))

/** Every place of a value, as what holds it and under which key. */
function places(value: unknown, found: [Record<string, unknown>, string][] = []): [Record<string, unknown>, string][] {
  if (typeof value !== 'object' || value === null) return found
  const holder = value as Record<string, unknown>
  for (const key of Object.keys(holder)) {
    found.push([holder, key])
    places(holder[key], found)
  }
  return found
}

function bent(body: unknown, bends: readonly Bend[]): string {
  const root = { body: structuredClone(body ?? {}) } as Record<string, unknown>
  let cutAt: number | undefined
  // Made-up values are shared between cases, and one that held itself would never end.
  for (const bend of bends) {
    const { at, how, value } = structuredClone(bend)
    const all = places(root)
    const [holder, key] = all[at % all.length] ?? [root, 'body']
    if (how === 'drop') delete holder[key]
    else if (how === 'put') holder[key] = value
    else if (how === 'twice') holder[key] = [holder[key], holder[key]]
    else if (how === 'nest') holder[key] = { [key]: holder[key] }
    else if (how === 'add')
      Object.defineProperty(holder, typeof value === 'string' ? value : JSON.stringify(value), {
        value: 1,
        enumerable: true,
        configurable: true,
        writable: true,
      })
    else cutAt = at
  }
  const text = JSON.stringify(root.body) ?? ''
  return cutAt === undefined ? text : text.slice(0, cutAt % (text.length + 1))
}

async function close(): Promise<void> {
  const was = opened
  opened = undefined
  if (was) await (await was).fixture.close()
}

/** Earlier cases may have changed what this one needs, such as the model that is asked: then the world is built anew. */
async function rightCall(endpoint: Endpoint) {
  try {
    return await (await open()).callOf(endpoint)
  } catch {
    await close()
    return (await open()).callOf(endpoint)
  }
}

async function send({ endpoint: id, bends }: Bent): Promise<void> {
  const endpoint = bodied.find(one => one.id === id)
  if (!endpoint) return
  const { path, body } = await rightCall(endpoint)
  const { fixture } = await open()
  const text = bent(body, bends)
  const answer = await fixture.runtime.fetch(
    new Request(`http://local${path}`, {
      method: endpoint.method,
      body: text,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    }),
  )
  const said = await answer.text()
  // 502 and 503 say that another host did not answer, and name it.
  const code = answer.status >= 400 ? (JSON.parse(said) as { code?: string; error?: string }) : undefined
  if (answer.status === 500 || code?.code === 'internal') {
    throw new Error(`${endpoint.method} ${path} with ${text}: ${answer.status} ${said}`)
  }
  if (code && (code.error ?? '').length < 5) throw new Error(`${answer.status} without a sentence: ${said}`)
}

const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1e308,
    0.1,
    '',
    ' ',
    '\u0000',
    '\ud800',
    '__proto__',
    '../../x',
    '%00',
    [],
    {},
    [[]],
  ),
  fc.constantFrom<unknown>(
    2 ** 53,
    -(2 ** 63),
    'x'.repeat(5000),
    '1e9',
    '9'.repeat(400),
    '{{',
    '2026-13-45T99:99:99Z',
    'http://[',
    '*/0 * * * *',
  ),
  fc.json({ maxDepth: 3 }).map(text => JSON.parse(text) as unknown),
  fc.string({ unit: 'binary', maxLength: 20 }),
)

export const bodies: Target[] = [
  target<Bent>({
    name: 'bodies',
    cases: fc.record({
      endpoint: fc.constantFrom(...bodied.map(({ id }) => id)),
      bends: fc.array(
        fc.record({
          at: fc.nat(60),
          how: fc.constantFrom('drop', 'put', 'put', 'put', 'twice', 'add', 'nest', 'cut'),
          value: odd,
        }),
        { minLength: 1, maxLength: 4 },
      ),
    }) as fc.Arbitrary<Bent>,
    attempt: send,
    close,
  }),
]
