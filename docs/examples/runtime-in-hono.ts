// The runtime under a path of a Hono app: durable agents next to an app, with one database file and no other process.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hono } from 'hono'
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

const call = async (method: string, path: string, body?: object) => {
  const answer = await app.request(`/agents${path}`, {
    ...{ method, headers: { authorization: `Bearer ${bootstrapKey}`, 'content-type': 'application/json' } },
    ...(body && { body: JSON.stringify(body) }),
  })
  return answer.headers.get('content-type')?.startsWith('application/json') ? answer.json() : answer.text()
}

await call('POST', '/v1/agents', { name: 'greeter', manifest: { model: 'demo/echo' } })
const { id } = await call('POST', '/v1/runs', { agentName: 'greeter', input: { prompt: 'Good morning' } })
// The stream ends when the run does.
await call('GET', `/v1/runs/${id}/events`)
const run = await call('GET', `/v1/runs/${id}`)
const receipt = await call('GET', `/v1/runs/${id}/receipt`)
const verdict = await call('POST', '/v1/runs/receipts/verify', receipt)
console.log(run.status, run.output, verdict.valid)
await runtime.close()
db.close()
await rm(folder, { recursive: true })
