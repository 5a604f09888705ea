import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Stands for a provider of both dialects, so that the examples run without a key: small models say nothing, large ones greet. */
export async function pretendProvider(): Promise<{ origin: string; close(): void }> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const { model } = JSON.parse(body) as { model: string }
    const text = model.includes('small') ? '' : `Hello from ${model}.`
    const answer = request.url?.endsWith('/messages')
      ? {
          ...{ id: 'msg_1', type: 'message', role: 'assistant', model, stop_reason: 'end_turn', stop_sequence: null },
          content: [{ type: 'text', text }],
          usage: { input_tokens: 12, output_tokens: 6 },
        }
      : {
          ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model },
          choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 12, completion_tokens: 6, total_tokens: 18 },
        }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
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
