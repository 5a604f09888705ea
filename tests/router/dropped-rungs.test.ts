import { describe, expect, it } from 'vitest'
import { createLog, parseLogFilter } from '../../shared/log/log.ts'
import { recordChainChecker } from '../../shared/sign/record-chain.ts'
import type { Explanation } from '../../shared/wire/router/explain.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

describe('a rung that cannot take a request', () => {
  it('stands with its reason on the receipt, in explain, in the metrics, and once in the log', async () => {
    const lines: Record<string, unknown>[] = []
    const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
    running = await testRouter({
      log: createLog({ filter: parseLogFilter('info')!, write }),
      env: {},
      config: `
price = [
  { model = "chatty/mini", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "keyed/mini", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [
  { id = "chatty", dialect = "chat", base_url = "${upstream.origin}/v1", auth = "none" },
  { id = "keyed", dialect = "messages", base_url = "${upstream.origin}", auth = "env", api_key_env = "NOT_SET" },
  { id = "large", dialect = "messages", base_url = "${upstream.origin}", auth = "none" },
]
[[route]]
match = {}
mode = "enforce"
ladder = ["chatty/mini", "keyed/mini", "large/best"]
gates = ["non-empty"]
translate = "strict"
`,
    })
    const { post, router, receipts } = running
    upstream.always(answer(200, JSON.stringify(messagesAnswer())))
    const plain = { model: 'auto', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
    const ids: string[] = []
    for (let n = 0; n < 3; n++) {
      const got = await post('/v1/messages', { ...plain, context_management: { edits: [] } })
      expect([got.status, got.headers.get('x-router-served-rung')]).toEqual([200, '2'])
      ids.push(got.headers.get('x-router-trace-id')!)
    }
    expect((await post('/v1/messages', plain)).status).not.toBe(500)

    const read = async (path: string) => router.fetch(new Request(`http://router${path}`))
    const explained = (await (await read(`/-/traces/${ids[0]}/explain`)).json()) as Explanation
    expect(explained.steps.map(({ step, decision, because }) => [step, decision, because])).toEqual(
      expect.arrayContaining([
        ['left out', 'rung 0 (chatty/mini) is not asked', expect.stringContaining('context_management')],
        ['left out', 'rung 1 (keyed/mini) is not asked', 'no credential for provider keyed'],
        ['start', 'rung 2', 'it is the lowest rung that can take this request'],
      ]),
    )
    const metrics = await (await read('/metrics')).text()
    expect(metrics).toContain('router_rungs_dropped_total{model="chatty/mini",reason="untranslatable",route="0"} 3\n')
    expect(metrics).toContain('router_rungs_dropped_total{model="keyed/mini",reason="no_credential",route="0"} 4\n')
    expect(lines.filter(({ message }) => String(message).startsWith('a rung is left out'))).toMatchObject([
      { level: 'info', route: 0, rung: 0, model: 'chatty/mini', reason: 'untranslatable' },
      { level: 'info', route: 0, rung: 1, model: 'keyed/mini', reason: 'no_credential' },
    ])

    const all = await receipts()
    expect(all[0]?.policy.dropped).toEqual([
      {
        rung: 0,
        model: 'chatty/mini',
        reason: 'untranslatable',
        because: expect.stringMatching(/^not expressible in the chat dialect: context_management/),
      },
      { rung: 1, model: 'keyed/mini', reason: 'no_credential', because: 'no credential for provider keyed' },
    ])
    expect(all[3]?.policy.dropped).toHaveLength(1)
    const chain = recordChainChecker()
    for (const record of all) expect(chain.push(record)).toBeUndefined()
  })
})
