import { describe, expect, it } from 'vitest'
import { configWarnings } from '../../router/active-config.ts'
import { loadConfig } from '../../router/config/load-config.ts'
import { formatProblem } from '../../router/config/problem.ts'
import type { FunctionGate } from '../../router/gates/gate-host.ts'
import { createLog, parseLogFilter } from '../../shared/log/log.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

/** Each gate says of an answer what the answer asks it to: `a=fail b=pass`. */
const says =
  (id: string): FunctionGate =>
  ({ candidate }) => {
    const word = new RegExp(`${id}=(\\w+)`).exec(candidate)?.[1]
    return { verdict: word === 'fail' || word === 'abstain' ? word : 'pass' }
  }
const config = (route = '', ladder = '"small/cheap", "large/best"') => `
price = [
  { model = "small/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${upstream.origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${upstream.origin}/large", auth = "none" },
]
gate = [
  { id = "a", kind = "function", name = "a" },
  { id = "b", kind = "function", name = "b", on_abstain = "fail-closed" },
]
[[route]]
match = {}
mode = "enforce"
ladder = [${ladder}]
gates = ["a", "b"]
${route}
`
async function ask(route: string, ...answers: string[]) {
  running = await testRouter({ config: config(route), gates: { functions: { a: says('a'), b: says('b') } } })
  upstream.queue(...answers.map(text => answer(200, JSON.stringify(messagesAnswer(text)))))
  const got = await running.post('/v1/messages', {
    model: 'auto',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'hi' }],
  })
  const body = (await got.json()) as { content?: { text: string }[]; error?: { type: string; message: string } }
  return { got, text: body.content?.[0]?.text, error: body.error }
}

describe('an answer that failed its gates', () => {
  it('says so in a header when it is served as the best there is', async () => {
    const { got, text } = await ask('', 'a=fail', 'a=fail')
    expect([got.status, text, got.headers.get('x-router-gates')]).toEqual([200, 'a=fail', 'failed: a'])
  })

  it('has no such header when it passed', async () => {
    const { got } = await ask('', 'good')
    expect([got.status, got.headers.get('x-router-gates')]).toEqual([200, null])
  })

  it.each(['must_pass = true', 'must_pass = ["a"]'])('is refused where the route says %s', async route => {
    const { got, error } = await ask(route, 'a=fail', 'a=fail')
    expect([got.status, got.headers.get('x-should-retry'), error?.type]).toEqual([
      424,
      'false',
      'invalid_request_error',
    ])
    expect(error?.message).toContain('must_pass')
    expect(await running!.receipts()).toMatchObject([{ final: { served_from: 'error', served_rung: -1, status: 424 } }])
  })

  it('is served where only other gates must pass, and one that passed those is preferred', async () => {
    const { got, text } = await ask(
      'must_pass = ["a"]\nserve_failed_above_threshold = false',
      'b=fail',
      'a=fail b=pass',
    )
    expect([got.status, text, got.headers.get('x-router-gates')]).toEqual([200, 'b=fail', 'failed: b'])
  })

  it('is refused where a gate that must pass and is fail-closed could not say anything', async () => {
    expect((await ask('must_pass = ["b"]', 'b=abstain', 'b=abstain')).got.status).toBe(424)
  })

  it('is not let through by its score', async () => {
    const route = 'must_pass = ["a"]\nserve_failed_above_threshold = true\nserve_threshold = 0.0'
    expect((await ask(route, 'a=fail', 'a=fail')).got.status).toBe(424)
  })
})

describe('what a config hardly means', () => {
  const load = (text: string) =>
    loadConfig(text, {
      hostHasProcesses: false,
      builtinPrices: { find: () => undefined },
      functions: ['a', 'b'],
      file: 'r.toml',
    })

  it('is refused for a gate in must_pass that the route does not have', () => {
    const loaded = load(config('must_pass = ["a", "bb"]'))
    expect(loaded.ok ? [] : loaded.problems.map(formatProblem)).toEqual([
      expect.stringMatching(/^r\.toml:\d+:\d+: .*"bb" is no gate of this route - did you mean "b"\?$/),
    ])
  })

  it('is warned of for an agent that does not name itself', () => {
    const loaded = load(config().replace('match = {}', 'match = { agent = ["claude-code", "Aider"] }'))
    expect(loaded.ok && configWarnings(loaded.config)).toEqual([
      '[[route]] #1: aider does not name itself, so agent = "aider" matches only calls with the header x-router-agent: aider; its own calls come as litellm or openai',
    ])
  })

  it('is warned of for a ladder that goes from dear to cheap', async () => {
    const lines: string[] = []
    const log = createLog({ filter: parseLogFilter('warn')!, write: line => void lines.push(line) })
    const gates = { functions: { a: says('a'), b: says('b') } }
    running = await testRouter({ log, gates, config: config('', '"large/best", "small/cheap"') })
    expect(lines.join()).toContain('its ladder asks large/best before small/cheap, which is cheaper')
    const right = await testRouter({ log, gates, config: config() })
    await right.close()
    expect(lines).toHaveLength(1)
  })
})
