// The runtime under a path of a Hono app: durable agents next to an app, with one database file and no other process.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hono } from 'hono'
import { runtimeClient } from 'waybill/client'
import { openDb } from 'waybill/db'
import { createRuntime } from 'waybill/runtime'

const folder = await mkdtemp(join(tmpdir(), 'example-'))
const db = await openDb(join(folder, 'agents.db'))
const bootstrapKey = `wb_live_${'example'.repeat(6)}x`
// An app keeps these 32 bytes somewhere safe: secrets, receipts' keys and run data are sealed under them.
const masterKey = crypto.getRandomValues(new Uint8Array(32))
const runtime = createRuntime({ db, bootstrapKey, masterKey })
await runtime.ready()

const app = new Hono()
app.get('/', c => c.text('the app itself'))
app.mount('/agents', request => runtime.fetch(request))

const client = runtimeClient({
  url: 'http://app/agents',
  key: bootstrapKey,
  fetch: async (input, init) => app.request(new Request(input, init)),
})

await client.agents.create({ body: { name: 'greeter', manifest: { model: 'demo/echo' } } })
const { id } = await client.runs.create({ body: { agentName: 'greeter', input: { prompt: 'Good morning' } } })
const params = { id }
// The stream ends when the run does.
for await (const { data } of client.runs.events({ params })) console.log(data.kind)
const run = await client.runs.get({ params })
const receipt = await client.receipts.get({ params })
const verdict = await client.receipts.verify({ body: receipt })
console.log(run.status, run.output, verdict.valid)
await runtime.close()
db.close()
await rm(folder, { recursive: true })
