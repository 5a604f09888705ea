import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveRouter } from '../../router/host/node.ts'
import { filesEntered } from '../files-entered.ts'
import { messagesAnswer } from '../upstream/answers.ts'

/**
 * Prints which source files one call enters on Node, as JSON: those with a function that runs from the moment the call is sent until its
 * answer has ended at the client. A process of its own, because a test runner transforms what it loads.
 */
const [mode = 'observe'] = process.argv.slice(2)

const upstream = createServer((asked, response) => {
  asked.resume().on('end', () => {
    const body = JSON.stringify(messagesAnswer('An answer.'))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
  })
})
await once(upstream.listen(0, '127.0.0.1'), 'listening')
const base = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`

const folder = await mkdtemp(join(tmpdir(), 'waybill-files-'))
const config = join(folder, 'router.toml')
await writeFile(
  config,
  `version = 1
price = [
  { model = "up/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "up/top", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "up", dialect = "messages", base_url = "${base}", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["up/cheap", "up/top"]
gates = ["non-empty", "json-valid"]
`,
)
const router = await serveRouter({
  ROUTER_BIND: '127.0.0.1:0',
  ROUTER_DB: join(folder, 'router.db'),
  ROUTER_UPSTREAM_MESSAGES: base,
  ...(mode === 'enforce' && { ROUTER_CONFIG: config }),
  RUST_LOG: 'error',
})

const body = JSON.stringify({ model: 'auto', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] })
async function call(): Promise<void> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const sent = request(`${router.origin}/v1/messages`, { method: 'POST', headers })
  sent.end(body)
  const [response] = await once(sent, 'response')
  if (response.statusCode !== 200) throw new Error(`the call was answered ${response.statusCode}`)
  response.resume()
  await once(response, 'end')
}

const files = await filesEntered(call)
await router.close()
upstream.closeAllConnections()
upstream.close()
await rm(folder, { recursive: true, force: true })
process.stdout.write(JSON.stringify(files))
