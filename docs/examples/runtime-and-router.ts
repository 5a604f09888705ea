// Both in one process: an agent with `model: "auto"` asks the router, and its journal names the router's receipt.
import { runtimeClient } from 'waybill/client'
import { openDb } from 'waybill/db'
import { createRouter } from 'waybill/router'
import { createRuntime } from 'waybill/runtime'
import { ladderOf, pretendProvider } from './pretend-provider.ts'

const provider = await pretendProvider()
const traces = await openDb(':memory:')
const router = createRouter({ config: ladderOf(provider.origin, 'messages'), db: traces })
await router.ready()
const store = await openDb(':memory:')
const bootstrapKey = `wb_live_${'example'.repeat(6)}x`
const runtime = createRuntime({ db: store, bootstrapKey, routerFetch: request => router.fetch(request) })
await runtime.ready()

const client = runtimeClient({
  url: 'http://runtime',
  key: bootstrapKey,
  fetch: async (input, init) => runtime.fetch(new Request(input, init)),
})

await client.agents.create({ body: { name: 'greeter', manifest: { model: 'auto' } } })
const { id } = await client.runs.create({ body: { agentName: 'greeter', input: { prompt: 'Good morning' } } })
const params = { id }
for await (const { data } of client.runs.events({ params })) console.log(data.kind)
const run = await client.runs.get({ params })
console.log(run.status, run.output, run.model)
const journal = await client.runs.journal({ params })
const traceId = journal.events.at(-1)?.meta.routerTraceId
await router.close()
const { rows } = await traces.execute('select trace_id, served_model, escalations from traces')
console.log('the journal names the receipt of the router:', rows[0]?.trace_id === traceId, rows[0]?.served_model)
await runtime.close()
provider.close()
store.close()
traces.close()
