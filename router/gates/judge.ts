import { isObject } from '../../shared/dialects/json-value.ts'
import { isSameModel, type Model } from '../config/model.ts'
import { broken, type GateInput, type GateRun, type GateVerdict } from './gate.ts'
import type { JudgeConfig } from './gate-config.ts'
import { readJsonAnswer } from './json-answer.ts'
import { judgePrompt, newNonce, promptHash } from './judge-prompt.ts'

/** A model grades the answer of another one (docs/spec/router.md §5.5). `nonce` is given by tests alone. */
export function judgeGate(config: JudgeConfig, nonce: () => string = newNonce): GateRun {
  const evidenceRef = `prompt:sha256:${promptHash(config.rubric)}`
  return async (input, signal) => {
    const judge = [config.model, config.fallbackModel].find(model => model !== null && !wrote(model, input))
    if (!judge) return { verdict: 'abstain', reason: 'maker_is_checker' }
    const { maxOutputTokens } = config
    const asked = await input.models.ask(judge, { ...judgePrompt(config, input, nonce()), maxOutputTokens }, signal)
    const { costNano } = asked
    if (asked.kind === 'failed') {
      const { reason, isFault } = asked
      return { ...(isFault ? broken(reason) : { verdict: 'abstain', reason }), costNano, evidenceRef }
    }
    return { ...readGrade(asked.candidate.choices[0]?.text ?? '', config.threshold), costNano, evidenceRef }
  }
}

/** A model never grades its own answer: neither by its name in the ladder, nor upstream, nor as the upstream names itself. */
function wrote(judge: Model, { model, upstreamModel, candidate }: GateInput): boolean {
  const named = candidate.model ?? upstreamModel
  return isSameModel(judge, { model, upstreamModel }) || isSameModel(judge, { model: named, upstreamModel: named })
}

/** One JSON object `{score, pass, reason}`: the score decides where there is one, else `pass`. */
export function readGrade(text: string, threshold: number): GateVerdict {
  const read = readJsonAnswer(text, true)
  if (!read.ok || !isObject(read.value)) return broken('bad_output')
  const { score, pass, reason } = read.value
  const said = typeof reason === 'string' && reason !== '' ? { reason } : {}
  if (score !== undefined && score !== null) {
    if (typeof score !== 'number' || !(score >= 0 && score <= 1)) return broken('bad_score')
    return { verdict: score >= threshold ? 'pass' : 'fail', score, ...said }
  }
  if (typeof pass !== 'boolean') return broken('bad_output')
  return { verdict: pass ? 'pass' : 'fail', ...said }
}
