import { describe, expect, it } from 'vitest'
import { loadBuiltinPrices } from '../../shared/prices/builtin.ts'
import { loadConfig } from './load-config.ts'
import { formatProblem } from './problem.ts'

const builtinPrices = await loadBuiltinPrices()

/** The complete example of the contract (§6.10). */
export const EXAMPLE = `version = 1
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
  it('x', () => { console.dir(load(EXAMPLE), {depth: 6}) })
})
