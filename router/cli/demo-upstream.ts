import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readJson } from '../../shared/json/read-json.ts'

export interface DemoUpstream {
  origin: string
  close(): Promise<void>
}

/** A provider on a free loopback port: the smallest model answers with nothing, the others with one sentence. */
export async function demoUpstream(): Promise<DemoUpstream> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { model } = readJson(Buffer.concat(chunks).toString()) as { model: string }
    const text = model === 'small' ? '' : 'Paris is the capital of France.'
    const body = JSON.stringify({
      id: `msg_demo_${model}`,
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1200, output_tokens: 220 },
    })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Three rungs at 1/5, 3/15 and 15/75 USD per million tokens (docs/spec/router.md §11.3). */
export const demoConfig = (origin: string) => `version = 1
price = [
  { model = "demo/small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "demo/medium", input_per_mtok = 3, output_per_mtok = 15 },
  { model = "demo/large", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "demo", dialect = "messages", base_url = "${origin}", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["demo/small", "demo/medium", "demo/large"]
gates = ["non-empty"]
`
