import type { Validator } from '@cfworker/json-schema'
import { readJson } from '../../shared/json/read-json.ts'
import type { Json } from '../../shared/sign/jcs.ts'
import { schemaValidator } from '../config/json-schema.ts'
import type { RegexAnswer, RegexJob } from './regex-runner.ts'
import { checkValue } from './schema-value.ts'

const KEPT_SCHEMAS = 64

/** Does jobs in the thread it is called on; keeps the compiled schemas that were used last. */
export function regexJobs(): (job: RegexJob) => RegexAnswer {
  const compiled = new Map<string, Validator>()

  function validatorOf(draft: '2020-12' | '7', text: string): Validator {
    const key = draft + text
    const validator = compiled.get(key) ?? schemaValidator({ schema: readJson(text) as Json, draft })
    compiled.delete(key)
    compiled.set(key, validator)
    for (const oldest of compiled.keys()) {
      if (compiled.size <= KEPT_SCHEMAS) break
      compiled.delete(oldest)
    }
    return validator
  }

  return job =>
    job.kind === 'patterns'
      ? matchPatterns(job)
      : checkValue(validatorOf(job.draft, job.schema), readJson(job.value) as unknown)
}

function matchPatterns({ text, must, mustNot, flags }: Extract<RegexJob, { kind: 'patterns' }>): RegexAnswer {
  const matches = (pattern: string) => new RegExp(pattern, flags).test(text)
  const missing = must.findIndex(pattern => !matches(pattern))
  if (missing >= 0) return { verdict: 'fail', reason: `must[${missing}] does not match` }
  const present = mustNot.findIndex(matches)
  if (present >= 0) return { verdict: 'fail', reason: `must_not[${present}] matches` }
  return { verdict: 'pass' }
}
