import { schemaValidator } from '../config/json-schema.ts'
import { broken, fail, type GateJudge, type GateRun, type GateVerdict, PASS } from './gate.ts'
import type { SchemaConfig } from './gate-config.ts'
import { jsonOf } from './json-valid.ts'
import type { RegexAnswer, RegexRunner } from './regex-runner.ts'
import { costlyKeywords } from './schema-cost.ts'
import { checkValue } from './schema-value.ts'

/**
 * The answer is JSON of a given shape. A schema that can take any time runs in the runner; `costly` names what makes it so
 * when there is none.
 */
export function schemaGate(
  config: SchemaConfig,
  runner: RegexRunner | undefined,
): { judge: GateJudge } | { run: GateRun } | { costly: readonly string[] } {
  const costly = costlyKeywords(config.schema, 'config')
  if (costly.length > 0) {
    if (runner === undefined) return { costly }
    const schema = JSON.stringify(config.schema)
    return {
      async run(input, signal) {
        const read = jsonOf(config, input)
        if ('verdict' in read) return read
        return verdictOf(await runner.run({ kind: 'schema', schema, draft: config.draft, value: read.text }, signal))
      },
    }
  }
  const validator = schemaValidator(config)
  return {
    judge(input) {
      const read = jsonOf(config, input)
      return 'verdict' in read ? read : verdictOf(checkValue(validator, read.value))
    },
  }
}

export function verdictOf(answer: RegexAnswer): GateVerdict {
  if (answer.verdict === 'pass') return PASS
  return answer.verdict === 'fail' ? fail(answer.reason) : broken(answer.reason)
}
