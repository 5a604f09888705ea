// Both in one process: an agent with `model: "auto"` asks the router, and its journal names the router's receipt.
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

const call = async (method: string, path: string, body?: object) => {
  const answer = await runtime.fetch(
    new Request(`http://runtime${path}`, {
      ...{ method, headers: { authorization: `Bearer ${bootstrapKey}`, 'content-type': 'application/json' } },
      ...(body && { body: JSON.stringify(body) }),
    }),
  )
  return answer.headers.get('content-type')?.startsWith('application/json') ? answer.json() : answer.text()
}

await call('POST', '/v1/agents', { name: 'greeter', manifest: { model: 'auto' } })
const { id } = await call('POST', '/v1/runs', { agentName: 'greeter', input: { prompt: 'Good morning' } })
await call('GET', `/v1/runs/${id}/events`)
const run = await call('GET', `/v1/runs/${id}`)
console.log(run.status, run.output, run.model)
const journal = await call('GET', `/v1/runs/${id}/journal`)
const traceId = journal.events.at(-1).meta.routerTraceId
await router.close()
const { rows } = await traces.execute('select trace_id, served_model, escalations from traces')
console.log('the journal names the receipt of the router:', rows[0]?.trace_id === traceId, rows[0]?.served_model)
await runtime.close()
provider.close()
store.close()
traces.close()
