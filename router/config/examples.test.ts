import { parse } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { loadBuiltinPrices } from '../../shared/prices/builtin.ts'
import { evidenceOf } from '../calibrate/calibration-reads.ts'
import { describeConfig } from './describe.ts'
import { loadConfig } from './load-config.ts'
import { formatProblem } from './problem.ts'

const builtinPrices = await loadBuiltinPrices()

/** The complete example of docs/spec/router.md §6.10. */
const EXAMPLE = `version = 1
defaults = { profile = "balanced", gates = ["non-empty"] }
budget = { per_day_usd = 200, per_tenant_day_usd = 100 }
calibration = { alpha = 0.10, delta = 0.05, method = "aci" }
learning = { algorithm = "thompson", epsilon = 0.02 }
price = [
  { model = "groq/llama-small", input_per_mtok = 0.05, output_per_mtok = 0.08 },
  { model = "openai/gpt-5.5", input_per_mtok = 5, output_per_mtok = 15, cache_read_per_mtok = 0.5 },
]
provider = [
  { id = "groq", dialect = "chat", base_url = "https://api.groq.com/openai/v1", api_key_env = "GROQ_API_KEY" },
  { id = "bedrock", dialect = "messages", base_url = "https://bedrock-runtime.eu-west-1.amazonaws.com", auth = "sigv4", region = "eu-west-1" },
]
gate = [
  { id = "tool-args", kind = "tool-args" },
  { id = "invoice", kind = "schema", on_abstain = "fail-closed", schema = { type = "object", required = ["total"], properties = { total = { type = "number" } } } },
  { id = "unit-tests", kind = "subprocess", cmd = ["node", "gates/run-tests.mjs"], timeout_ms = 20000, env_pass = ["CI"] },
  { id = "referee", kind = "judge", model = "openai/gpt-5.5", rubric = "The answer states every amount found in the document.", threshold = 0.75 },
]
[[route]]
match = { agent = "claude-code", has_tools = true }
mode = "enforce"
ladder = ["anthropic/claude-haiku-4-5", "anthropic/claude-sonnet-5", "anthropic/claude-opus-4-8"]
gates = ["non-empty", "tool-args"]
min_rung_images = 1
budget = { per_request_usd = 0.50, per_session_usd = 10 }
[[route]]
match = { task = ["extract", "classify"], api = "chat" }
mode = "enforce"
profile = "cost"
ladder = ["groq/llama-small", "openai/gpt-4.1-mini", "anthropic/claude-sonnet-5"]
gates = ["invoice", "unit-tests", "referee"]
on_exhausted = "error"
shadow_rate = 0.02
[[route]]
match = {}
mode = "observe"
`

const load = (text: string) => {
  const result = loadConfig(text, { file: 'router.toml', hostHasProcesses: true, builtinPrices })
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'))
  return result.config
}

describe('example configs', () => {
  it('loads the complete example with every name resolved', () => {
    const config = load(EXAMPLE)
    expect(config.routes.map(({ ix, mode, profile, gates }) => ({ ix, mode, profile, gates }))).toEqual([
      { ix: 0, mode: 'enforce', profile: 'balanced', gates: ['non-empty', 'tool-args'] },
      { ix: 1, mode: 'enforce', profile: 'cost', gates: ['invoice', 'unit-tests', 'referee'] },
      { ix: 2, mode: 'observe', profile: 'balanced', gates: ['non-empty'] },
    ])
    const [code, extract] = config.routes
    expect(code?.ladder.map(rung => [rung.rung, rung.upstreamModel, rung.price?.source])).toEqual([
      [0, 'claude-haiku-4-5', 'builtin'],
      [1, 'claude-sonnet-5', 'builtin'],
      [2, 'claude-opus-4-8', 'builtin'],
    ])
    expect(code).toMatchObject({ minRungImages: 1, maxEscalations: 2, maxAttempts: 6, strongRung: 2, stickyTtlS: 0 })
    expect(code?.budget).toMatchObject({ perRequest: 500_000_000, perSession: 10_000_000_000, perDay: null })
    expect(extract).toMatchObject({ onExhausted: 'error', shadowRate: 0.02 })
    expect(extract?.ladder[0]?.price).toMatchObject({
      source: 'config',
      base: { uncached: 50_000n, output: 80_000n, cache_read: 50_000n },
    })
    expect(config.gates.referee).toMatchObject({ kind: 'judge', threshold: 0.75, timeoutMs: 30_000 })
    expect(config.gates['tool-args']).toMatchObject({ kind: 'tool-args', timeoutMs: 1000, onAbstain: 'fail-open' })
    expect(config.gates.invoice).toMatchObject({ kind: 'schema', onAbstain: 'fail-closed', draft: '2020-12' })
    expect(config.gates['non-empty']).toMatchObject({ kind: 'non-empty', minChars: 1 })
    expect(config.providers.groq).toMatchObject({ auth: 'env', apiKeyEnv: 'GROQ_API_KEY', builtin: false })
    expect(config.providers.bedrock).toMatchObject({ auth: 'sigv4', service: 'bedrock' })
    expect(config.providers.anthropic).toMatchObject({ auth: 'passthrough', baseUrl: 'https://api.anthropic.com' })
    expect(config.learning).toMatchObject({ algorithm: 'thompson', epsilon: 0.02, minObservations: 50 })
    expect(config.budget.perTenantDay).toBe(100_000_000_000)
  })

  it('takes a file that holds only a [[route]] with match, mode, ladder and gates', () => {
    const config = load(`[[route]]
match = { agent = "claude-code" }
mode = "enforce"
ladder = ["anthropic/claude-haiku-4-5", "anthropic/claude-opus-4-8"]
gates = ["non-empty", "json-valid"]
`)
    expect(config.routes).toHaveLength(1)
    expect(config.routes[0]).toMatchObject({
      mode: 'enforce',
      startRung: 0,
      maxEscalations: 1,
      onExhausted: 'serve_best',
    })
    expect(config.limits).toMatchObject({ maxBodyBytes: 33_554_432, totalMs: 600_000, maxRetryWaitS: 5 })
    expect(config.store).toMatchObject({ queue: 8192, batch: 256, checkpointRecords: 256, storeReasons: true })
    expect(config.calibration).toMatchObject({ alpha: 0.1, delta: 0.05, gamma: 0.02, minN: 30, method: 'aci' })
  })

  it('takes the same config as an object', () => {
    const text = load(EXAMPLE)
    const object = loadConfig(parse(EXAMPLE), { hostHasProcesses: true, builtinPrices })
    expect(object.ok && object.config.configHash).toBe(text.configHash)
  })

  it('gives frozen configs whose hash tells content apart and nothing else', () => {
    const config = load(EXAMPLE)
    expect(Object.isFrozen(config.routes[0]?.ladder[0]?.price?.base)).toBe(true)
    expect(() => Object.assign(config.routes[0]!, { mode: 'observe' })).toThrow(TypeError)
    expect(config.configHash).toMatch(/^[0-9a-f]{64}$/)
    expect(load(`# a comment\n${EXAMPLE}`).configHash).toBe(config.configHash)
    expect(load(EXAMPLE.replace('threshold = 0.75', 'threshold = 0.7')).configHash).not.toBe(config.configHash)
    const dearer = load(EXAMPLE.replace('output_per_mtok = 0.08', 'output_per_mtok = 0.09'))
    expect(dearer.configHash).toBe(config.configHash)
    expect(dearer.priceTableHash).not.toBe(config.priceTableHash)
  })

  it('keeps a route recognisable when it moves, and makes a new one of a changed ladder', () => {
    const config = load(EXAMPLE)
    const parts = EXAMPLE.split('[[route]]')
    const moved = load([parts[0], parts[2], parts[1], parts[3]].join('[[route]]'))
    expect(moved.routes[0]?.fingerprint).toBe(config.routes[1]?.fingerprint)
    expect(moved.routes[1]?.fingerprint).toBe(config.routes[0]?.fingerprint)
    const changed = load(
      EXAMPLE.replace('"anthropic/claude-sonnet-5", "anthropic/claude-opus-4-8"', '"anthropic/claude-opus-4-8"'),
    )
    expect(changed.routes[0]?.fingerprint).not.toBe(config.routes[0]?.fingerprint)
    expect(changed.routes[1]?.fingerprint).toBe(config.routes[1]?.fingerprint)
  })
})

describe('the evidence of a route', () => {
  const judged = (gate: string, model = '') => `
provider = [ { id = "p", dialect = "chat", base_url = "http://127.0.0.1:1/v1", auth = "none" } ]
price = [ { model = "p/small", input_per_mtok = 1, output_per_mtok = 1 }, { model = "p/judge", input_per_mtok = 1, output_per_mtok = 1 } ]
gate = [ { id = "judge", kind = "judge", model = "p/judge", rubric = "is it right?"${gate} } ]
${model}
[[route]]
mode = "enforce"
match = {}
ladder = ["p/small"]
gates = ["non-empty", "judge"]
budget = { per_day_usd = 5 }
`
  const routeOf = (text: string) => load(text).routes[0]!
  const first = routeOf(judged(''))

  it.each([
    ['a gate lets other answers through', judged(', threshold = 0.6')],
    ['what a gate looks for', judged('').replace('is it right?', 'is it polite?')],
    ['who grades', judged(', fallback_model = "p/small"')],
    ['where its provider is', judged('').replace('127.0.0.1:1/', '127.0.0.1:2/')],
    ['which model its provider is asked for', judged('', '[[model]]\nid = "p/small"\nupstream_model = "smaller"\n')],
  ])('starts again when this changes: %s', (_what, text) => {
    expect(evidenceOf(routeOf(text))).not.toBe(evidenceOf(first))
    expect(routeOf(text).fingerprint).toBe(first.fingerprint)
  })

  it('starts again when the judge is asked elsewhere', () => {
    const at = (address: string) =>
      judged('')
        .replaceAll('p/judge', 'j/judge')
        .replace('provider = [', `provider = [ { id = "j", dialect = "chat", base_url = "${address}" },`)
    expect(evidenceOf(routeOf(at('https://a.test/v1')))).not.toBe(evidenceOf(routeOf(at('https://b.test/v1'))))
  })

  it.each([
    ['how long a gate may take, and how many run', judged(', timeout_ms = 9000, max_parallel = 2, cost_usd = 0.1')],
    ['a price', judged('').replace('output_per_mtok = 1 }', 'output_per_mtok = 2 }')],
    ['its budget', judged('').replace('per_day_usd = 5', 'per_day_usd = 6')],
  ])('is kept when this changes: %s', (_what, text) => {
    expect(evidenceOf(routeOf(text))).toBe(evidenceOf(first))
  })

  it('is kept under the fingerprint where the names of gates and models say all', () => {
    const plain = judged('').replace('"non-empty", "judge"', '"non-empty"')
    const own = routeOf(plain)
    expect(evidenceOf(own)).not.toBe(own.fingerprint)
    const vendors = routeOf(plain.replace('["p/small"]', '["anthropic/claude-haiku-4-5"]'))
    expect(evidenceOf(vendors)).toBe(vendors.fingerprint)
  })
})

describe('describeConfig', () => {
  const live = { env: { GROQ_API_KEY: 'canary-key' }, breakerOf: () => 'closed' as const, isDisabled: () => false }

  it('answers the config parts of the capabilities without a secret or a full address', () => {
    const config = load(EXAMPLE)
    const part = describeConfig(config, live)
    expect(part.providers.map(({ id, credential, base_host }) => [id, credential, base_host])).toEqual([
      ['anthropic', 'passthrough', 'api.anthropic.com'],
      ['openai', 'passthrough', 'api.openai.com'],
      ['groq', 'env', 'api.groq.com'],
      ['bedrock', 'missing', 'bedrock-runtime.eu-west-1.amazonaws.com'],
    ])
    expect(part.routes[1]?.ladder[0]).toMatchObject({ price: { input_per_mtok: 0.05, output_per_mtok: 0.08 } })
    expect(part.routes[0]?.budget).toEqual({ per_request_usd: 0.5, per_session_usd: 10 })
    expect(part.routes[2]?.budget).toBeNull()
    expect(part.price_table.overrides).toBe(2)
    expect(JSON.stringify(part)).not.toMatch(/canary|\/openai\/v1|GROQ_API_KEY/)
  })

  it('says of a provider that wants no key that none is needed, and not that it is missing', () => {
    const config = load('[[provider]]\nid = "ollama"\ndialect = "chat"\nbase_url = "http://127.0.0.1:11434/v1"\n')
    expect(describeConfig(config, live).providers.at(-1)).toMatchObject({
      id: 'ollama',
      auth: 'none',
      credential: 'none',
    })
  })

  it('keeps the values of provider headers out of the description and the hash', () => {
    const withHeader = (value: string) =>
      load(
        `[[provider]]\nid = "own"\ndialect = "chat"\nbase_url = "https://own.example/deep"\nheaders = { x-team = "${value}" }\n`,
      )
    const config = withHeader('canary')
    expect(config.providers.own?.headers['x-team']).toBe('canary')
    expect(JSON.stringify(describeConfig(config, live))).not.toContain('canary')
    expect(withHeader('other').configHash).toBe(config.configHash)
  })
})
