import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Asked {
  model: string
  messages: { role: string; content: unknown }[]
  tools?: { function?: { name: string } }[]
}

/**
 * Stands for a provider of both dialects, so that the examples run without a key: small models say nothing, others greet. In the chat
 * dialect one that is given tools calls the first of them, with the first number it was told as `id`, and says what came back.
 */
export async function pretendProvider(port = 0): Promise<{ origin: string; close(): void }> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const asked = JSON.parse(body) as Asked
    const answer = request.url?.endsWith('/messages') ? messagesAnswer(asked) : chatAnswer(asked)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const greeting = ({ model }: Asked) => (model.includes('small') ? '' : `Hello from ${model}.`)

const messagesAnswer = (asked: Asked) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: asked.model,
  stop_reason: 'end_turn',
  stop_sequence: null,
  content: [{ type: 'text', text: greeting(asked) }],
  usage: { input_tokens: 12, output_tokens: 6 },
})

function chatAnswer(asked: Asked) {
  const last = asked.messages.at(-1)
  const name = last?.role === 'user' ? asked.tools?.[0]?.function?.name : undefined
  const id = /\d+/.exec(String(last?.content))?.[0]
  const said = last?.role === 'tool' ? `It is ${String(last.content)}.` : greeting(asked)
  const call = { id: 'call_1', type: 'function', function: { name, arguments: JSON.stringify({ id }) } }
  const message = name === undefined ? { content: said } : { content: null, tool_calls: [call] }
  const finish = name === undefined ? 'stop' : 'tool_calls'
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: asked.model,
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
    usage: { prompt_tokens: 12, completion_tokens: 6, total_tokens: 18 },
  }
}

/** A ladder of two models of that provider: the small one is asked first, and its empty answers are not served. */
export const ladderOf = (origin: string, dialect: 'messages' | 'chat') => ({
  price: [
    { model: 'pretend/small', input_per_mtok: 1, output_per_mtok: 5 },
    { model: 'pretend/large', input_per_mtok: 10, output_per_mtok: 50 },
  ],
  provider: [{ id: 'pretend', dialect, base_url: origin, auth: 'none' }],
  route: [{ match: {}, mode: 'enforce', ladder: ['pretend/small', 'pretend/large'], gates: ['non-empty'] }],
})

// As a program it listens on the port of its argument: node pretend-provider.ts 9000
if (import.meta.main) console.log((await pretendProvider(Number(process.argv[2] ?? 0))).origin)
