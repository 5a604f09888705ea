import { sampleTrace } from '../../router/traces/testing/records.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'

const DAY_MS = 86_400_000
/** Markup where a client can put any text. */
export const HOSTILE = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`

/** Of a name: what stands behind the mark is read from its end. */
const TURNED = 'openai/\u202e5-tpg'

export const CONFIG = `version = 1
[calibration]
alpha = 0.1
[[route]]
match = {}
mode = "enforce"
ladder = ["anthropic/claude-haiku-4-5", "anthropic/claude-sonnet-5"]
gates = ["non-empty"]
`

/** Sixty calls of twelve days; every fifth climbed a rung, and one carries markup where a client can put any text. */
export function calls(): UnsealedTrace[] {
  // Of yesterday: no second of the test is at the edge of a day.
  const noon = (Math.floor(Date.now() / DAY_MS) - 0.5) * DAY_MS
  return Array.from({ length: 60 }, (_, i) => {
    const at = noon - Math.floor((59 - i) / 5) * DAY_MS - (60 - i) * 1000
    const plain = sampleTrace({
      at,
      session: `session-${i % 3}`,
      ...(i === 30 && { model: HOSTILE }),
      ...(i === 33 && { model: TURNED }),
    })
    return i % 5 === 4 ? climbed(plain) : plain
  })
}

function climbed(trace: UnsealedTrace): UnsealedTrace {
  const [first] = trace.attempts
  const gate = { ...first!.gates[0]!, verdict: 'fail' as const, score: 0, reason: 'empty' }
  const served_model = 'anthropic/claude-sonnet-5'
  return {
    ...trace,
    attempts: [
      { ...first!, gate: 'fail', verdict: 'fail', score: 0, gates: [gate] },
      { ...first!, rung: 1, model: served_model, cost: 0.0069, cause: 'escalation' },
    ],
    final: {
      ...trace.final,
      served_rung: 1,
      served_model,
      total_cost_usd: 0.0092,
      savings_usd: 0.0023,
      escalations: 1,
    },
  }
}
