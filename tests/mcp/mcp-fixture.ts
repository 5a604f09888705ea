import type { ModelAnswer, ModelRequest, ToolResult } from '../../runtime/execution/models/model.ts'
import type { RuntimeOptions } from '../../runtime/runtime.ts'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Run, Step } from '../../shared/wire/runtime/run.ts'
import { api } from '../runtime/api.ts'
import { expectRebuilt } from '../runtime/rebuilt.ts'

/** A runtime that may reach these origins, with an agent `worker` whose model says one thing after the other. */
export async function mcpFixture(
  origins: readonly string[],
  mcpServers: readonly object[],
  answers: readonly ModelAnswer[],
  { manifest = {}, ...options }: Partial<RuntimeOptions> & { manifest?: object } = {},
) {
  const asked: ModelRequest[] = []
  const model = {
    id: 'test/model',
    async ask(request: ModelRequest) {
      asked.push(structuredClone({ ...request }))
      const turn = request.messages.filter(({ role }) => role === 'assistant').length
      const answer = answers[turn]
      if (!answer) throw new Error(`nothing is scripted for turn ${turn + 1}`)
      return answer
    },
  }
  const egress = nodeEgress({ rule: outboundRule(origins.map(origin => readAllowEntry(new URL(origin).host)!)) })
  const made = await api({
    egress,
    masterKey: new Uint8Array(32).fill(9),
    models: { find: async () => model },
    ...options,
  })
  const retry = { maxAttempts: 3, backoffMs: 0, maxBackoffMs: 5, jitter: false }
  const { json, call } = made
  const publish = (more: object = {}) =>
    json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { retry, mcpServers, ...manifest, ...more } })
  await publish()

  async function ended({ id }: Run) {
    await (await call('GET', `/v1/runs/${id}/events`)).text()
    const steps = await json<Step[]>(200, 'GET', `/v1/runs/${id}/steps`)
    await expectRebuilt({ json }, id, steps)
    return {
      run: await json<Run>(200, 'GET', `/v1/runs/${id}`),
      steps,
      journal: await json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`),
    }
  }
  const start = () => json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'go' } })
  return {
    ...made,
    asked,
    publish,
    start,
    ended,
    run: async () => ended(await start()),
    /** The names that the model was offered when it was first asked. */
    offered: () => asked[0]?.tools.map(({ name }) => name),
    /** What the model was told of its calls before it was asked for a turn. */
    told(turn: number): { content: unknown; failed: boolean }[] {
      const results = asked[turn]?.messages.flatMap(one => (one.role === 'tool' ? [one.results] : [])) ?? []
      const last: readonly ToolResult[] = results.at(-1) ?? []
      return last.map(({ content, failed }) => ({ content: JSON.parse(content) as unknown, failed }))
    },
    async close() {
      await made.close()
      await egress.close()
    },
  }
}
