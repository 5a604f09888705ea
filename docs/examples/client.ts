// The typed client: what `ask` does runs the same in a page, in a worker and in Node.
import { ClientError, type RuntimeClient, runtimeClient } from 'waybill/client'

async function ask(client: RuntimeClient, agentName: string, prompt: string): Promise<string> {
  try {
    const { id } = await client.runs.create({ body: { agentName, input: { prompt } } })
    const params = { id }
    // Ends with the run; a connection that breaks is opened again behind the last event.
    for await (const { data } of client.runs.events({ params })) console.log(data.seq, data.kind, data.stepId)
    const { status, output } = await client.runs.get({ params })
    return `${status} ${JSON.stringify(output)}`
  } catch (error) {
    if (!(error instanceof ClientError)) throw error
    if (error.code === 'validation_failed') return error.details.map(({ path }) => `${path} does not fit`).join()
    return `${error.status ?? 'no answer'}: ${error.message}`
  }
}

// A service to try it on, in this process. Elsewhere its address is enough: runtimeClient({ url, key }).
const { openDb } = await import('waybill/db')
const { createRuntime } = await import('waybill/runtime')
const db = await openDb(':memory:')
const key = `wb_live_${'example'.repeat(6)}x`
const runtime = createRuntime({ db, bootstrapKey: key })
await runtime.ready()
const client = runtimeClient({
  url: 'http://runtime',
  key,
  fetch: async (input, init) => runtime.fetch(new Request(input, init)),
})

await client.agents.create({ body: { name: 'greeter', manifest: { model: 'demo/echo' } } })
console.log(await ask(client, 'greeter', 'Good morning'))
console.log(await ask(client, 'nobody', 'Good morning'))
console.log(await ask(client, '', 'Good morning'))
await runtime.close()
db.close()
