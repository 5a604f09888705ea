import { engineFixture, says } from '../../runtime/execution/testing/engine-fixture.ts'

const RESULTS = 120
const body = new TextEncoder().encode('words '.repeat(170_000))

/** A run with more results of a megabyte than the heap of this process holds, and a look at one of them. Prints how it ended. */
const call = says('', [{ name: 'http_request', arguments: { url: 'https://far.example/page' } }])
const look = says('', [{ name: 'read_result', arguments: { result: 'tool-1-1', fromByte: 900_000, bytes: 20 } }])
const answers = [...Array(RESULTS).fill(call), look]
const { create, until, runs, engine, close } = await engineFixture({
  manifest: {
    tools: ['http_request'],
    egress: [{ host: 'far.example' }],
    limits: { maxSteps: 1000, maxTurns: 400, maxOutputTokens: 16 },
  },
  // Without tools it is asked to shorten the conversation.
  ask: async ({ tools }) => (tools.length === 0 ? says('short') : (answers.shift() ?? says('done'))),
  outbound: async () => ({ status: 200, headers: {}, body, truncated: false }),
})
await engine.start()
const id = await create({ prompt: 'Read all.' })
engine.wake()
const { status } = await until(id, ['succeeded', 'failed'], 120_000)
const events = await runs.events(id, 1, 1000)
const looked = events.find(({ kind, stepId }) => kind === 'step_completed' && stepId === `tool-${RESULTS + 1}-1`)
process.stdout.write(JSON.stringify({ status, ...looked?.payload }))
await close()
