// The router as the `fetch` of the official SDKs inside an Express app: no proxy to run, no socket in between.
import Anthropic from '@anthropic-ai/sdk'
import express from 'express'
import { openDb } from 'waybill/db'
import { createRouter } from 'waybill/router'
import { routedFetch } from 'waybill/router/fetch'
import { ladderOf, pretendProvider } from './pretend-provider.ts'

const provider = await pretendProvider()
const db = await openDb(':memory:')
const router = createRouter({ config: ladderOf(provider.origin, 'messages'), db })
await router.ready()
const claude = new Anthropic({ apiKey: 'not-needed-here', fetch: routedFetch(router) })

const app = express()
app.use(express.json())
app.post('/ask', async (request, response) => {
  const { question } = request.body as { question: string }
  const answer = await claude.messages
    .create({ model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: question }] })
    .withResponse()
  const [block] = answer.data.content
  response.json({
    answer: block?.type === 'text' ? block.text : '',
    servedBy: answer.response.headers.get('x-router-served-model'),
    receipt: answer.response.headers.get('x-router-trace-id'),
  })
})

const server = app.listen(0, '127.0.0.1', async () => {
  const { port } = server.address() as { port: number }
  const asked = await fetch(`http://127.0.0.1:${port}/ask`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ question: 'Who are you?' }),
  })
  const told = (await asked.json()) as { receipt: string }
  console.log(told)
  const why = await router.fetch(new Request(`http://router/-/traces/${told.receipt}/explain`))
  console.log(((await why.json()) as { summary: string }).summary)
  server.close()
  provider.close()
  await router.close()
  db.close()
})
