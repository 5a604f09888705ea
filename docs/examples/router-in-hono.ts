// The router behind a path of a Hono app, for clients that speak a provider's dialect, and as the `fetch` of an SDK beside it.
import { Hono } from 'hono'
import OpenAI from 'openai'
import { openDb } from 'waybill/db'
import { createRouter } from 'waybill/router'
import { routedFetch } from 'waybill/router/fetch'
import { ladderOf, pretendProvider } from './pretend-provider.ts'

const provider = await pretendProvider()
const db = await openDb(':memory:')
const router = createRouter({ config: ladderOf(`${provider.origin}/v1`, 'chat'), db })
await router.ready()

const app = new Hono()
app.mount('/llm', request => router.fetch(request))
app.get('/', async c => {
  const openai = new OpenAI({ apiKey: 'not-needed-here', fetch: routedFetch(router) })
  const said = await openai.chat.completions.create({ model: 'auto', messages: [{ role: 'user', content: 'Hello?' }] })
  return c.text(said.choices[0]?.message.content ?? '')
})

console.log(await (await app.request('/')).text())
const mounted = await app.request('/llm/v1/chat/completions', {
  method: 'POST',
  body: JSON.stringify({ model: 'auto', messages: [{ role: 'user', content: 'Hello?' }] }),
})
console.log(mounted.status, mounted.headers.get('x-router-served-model'))
provider.close()
await router.close()
db.close()
