import { expect, it } from 'vitest'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, scriptedUpstream } from '../upstream/scripted.ts'
import { testRouter } from './routers.ts'

const said = 'Say "cache_control": {"type":"ephemeral"}, please.'
const asked = { type: 'text', text: said }
const thought = { type: 'thinking', thinking: 'So.', signature: 'c2ln' }

it.each([
  ['nowhere', asked],
  ['behind the text', { ...asked, cache_control: { type: 'ephemeral', ttl: '1h' } }],
  ['before the text', { cache_control: { type: 'ephemeral' }, ...asked }],
])('a conversation is one session where the mark of its cache was %s at its first turn', async (_, first) => {
  const upstream = await scriptedUpstream()
  upstream.always(answer(200, JSON.stringify(messagesAnswer('Yes.', 'claude-haiku-4-5'))))
  const router = await testRouter({
    config: `
price = [
  { model = "a/claude-haiku-4-5", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "a/claude-opus-4-8", input_per_mtok = 5, output_per_mtok = 25 },
]
provider = [{ id = "a", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }]
route = [{ match = {}, mode = "enforce", ladder = ["a/claude-haiku-4-5", "a/claude-opus-4-8"], gates = ["non-empty"] }]`,
  })
  const ask = async (...messages: object[]) => {
    const got = await router.post('/v1/messages', { model: 'claude-opus-4-8', max_tokens: 50, messages })
    await got.text()
  }
  const on = { type: 'text', text: 'Go on.', cache_control: { type: 'ephemeral' } }
  await ask({ role: 'user', content: [first] })
  const turn = { role: 'assistant', content: [thought, { type: 'text', text: 'Yes.' }] }
  await ask({ role: 'user', content: [asked] }, turn, { role: 'user', content: [on] })
  await ask({ role: 'user', content: [{ ...asked, text: 'Something else.' }] })
  const [one, two, other] = await router.receipts()
  expect(two?.session_id).toBe(one?.session_id)
  expect(other?.session_id).not.toBe(one?.session_id)
  // The floor of a history with thinking is what the session was served by, not what the request names.
  expect(two?.policy.start_rung).toBe(0)
  await router.close()
  await upstream.close()
})
