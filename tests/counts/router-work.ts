import { undiciTransport } from '../../router/host/undici-transport.ts'
import { createRouter, type Router } from '../../router/router.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, scriptedUpstream } from '../upstream/scripted.ts'
import { countedDb } from './counted-db.ts'
import type { Work } from './work.ts'

const config = (origin: string) => `version = 1
price = [
  { model = "up/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "up/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "up", dialect = "messages", base_url = "${origin}", auth = "none" }]
[[route]]
match = { agent = "looked-at" }
mode = "observe"
[[route]]
match = {}
mode = "enforce"
ladder = ["up/cheap", "up/best"]
gates = ["non-empty"]
`

/** What the router does for a few fixed calls, each in a life of its own on one store: from its start to its end, with the receipt. */
export async function routerWork(path: string): Promise<Record<string, Work>> {
  const upstream = await scriptedUpstream()
  upstream.always((response, seen, request) => {
    const { model } = JSON.parse(String(seen.body)) as { model: string }
    const text = model.includes('cheap') && String(seen.body).includes('hard') ? '' : 'An answer.'
    return answer(200, JSON.stringify(messagesAnswer(text, model)))(response, seen, request)
  })
  const clock = manualClock(new Date('2026-01-02T03:04:05.678Z'))

  async function life(act: (router: Router) => Promise<unknown>): Promise<Work> {
    const store = await countedDb(path)
    const router = createRouter({
      db: store.db,
      clock,
      sha256: nativeSha256,
      transport: undiciTransport({ connectMs: 1000 }),
      config: config(upstream.origin),
      env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin },
    })
    let open = true
    const bytes = async () => {
      const { rows } = await store.db.execute('select sum(length(body)) as n from traces')
      return Number(rows[0]?.n ?? 0)
    }
    try {
      await router.ready()
      const [fetchesBefore, bytesBefore] = [upstream.seen.length, await bytes()]
      await store.taken()
      await act(router)
      open = false
      await router.close()
      const { texts, ...counted } = await store.taken()
      const fetches = upstream.seen.length - fetchesBefore
      return { counts: { ...counted, journalBytes: (await bytes()) - bytesBefore, fetches }, texts }
    } finally {
      if (open) await router.close()
      store.close()
    }
  }

  let traceId = ''
  const ask = (agent: string, question: string) => async (router: Router) => {
    const headers = { 'content-type': 'application/json', 'x-router-agent': agent }
    const messages = [{ role: 'user', content: question }]
    const body = JSON.stringify({ model: 'up-cheap', max_tokens: 100, messages })
    const got = await router.fetch(new Request('http://router/v1/messages', { method: 'POST', headers, body }))
    if (got.status !== 200) throw new Error(`the call was answered ${got.status}: ${await got.text()}`)
    await got.text()
    traceId = got.headers.get('x-router-trace-id') ?? ''
  }
  const report = async (router: Router) => {
    const body = JSON.stringify({ request_id: traceId, outcome: 'correct' })
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
    const got = await router.fetch(new Request('http://router/v1/feedback', init))
    if (got.status !== 202) throw new Error(`the feedback was answered ${got.status}: ${await got.text()}`)
  }

  try {
    // The first life makes keys and opens the chain of the tenant.
    await life(ask('first', 'hello'))
    return {
      'router: a start and a stop': await life(async () => undefined),
      'router: a call that is observed': await life(ask('looked-at', 'hello')),
      'router: a call that the first rung answers': await life(ask('routed', 'hello')),
      'router: a call that climbs one rung': await life(ask('routed', 'something hard')),
      'router: one feedback': await life(report),
    }
  } finally {
    await upstream.close()
  }
}
