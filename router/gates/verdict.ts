import { isObject } from '../../shared/dialects/json-value.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { fromUsd } from '../../shared/money/money.ts'
import { broken, fail, type GateVerdict, PASS } from './gate.ts'
import type { RegexAnswer } from './regex-runner.ts'

/** What a gate outside of this program answers (docs/spec/router.md §5.3). */
export interface GateAnswer {
  readonly verdict: 'pass' | 'fail' | 'abstain'
  readonly score?: number
  readonly reason?: string
  readonly evidence_ref?: string
  readonly cost_usd?: number
}

const NOTE_CHARS = 200
/** The most a config can name as the price of a run; a larger number is a mistake. */
const MAX_COST_USD = 1000

const isScore = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= 1
const isCost = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= MAX_COST_USD

/** Reads an answer; members it does not know are left alone, `null` counts as absent. */
export function readVerdict(answer: unknown): GateVerdict {
  if (!isObject(answer)) return broken('bad_output')
  const { verdict, score, reason, evidence_ref, cost_usd } = answer
  if (verdict !== 'pass' && verdict !== 'fail' && verdict !== 'abstain') return broken('bad_output')
  const absent = (value: unknown) => value === undefined || value === null
  if (!absent(cost_usd) && !isCost(cost_usd)) return broken('bad_output')
  // The work was done and named its price, whatever is wrong with the rest.
  const cost = isCost(cost_usd) ? { costNano: fromUsd(cost_usd) } : {}
  if (!absent(score) && !isScore(score)) return { ...broken('bad_score'), ...cost }
  if (!isNote(reason) || !isNote(evidence_ref)) return { ...broken('bad_output'), ...cost }
  return {
    verdict,
    ...(isScore(score) && { score }),
    ...(typeof reason === 'string' && { reason }),
    ...(typeof evidence_ref === 'string' && { evidenceRef: evidence_ref }),
    ...cost,
  }
}

const isNote = (value: unknown): boolean => value === undefined || value === null || typeof value === 'string'

/** Reads an answer as text. */
export function readVerdictText(text: string): GateVerdict {
  try {
    return readVerdict(readJson(text) as unknown)
  } catch (error) {
    if (error instanceof SyntaxError) return broken('bad_output')
    throw error
  }
}

export function verdictOf(answer: RegexAnswer): GateVerdict {
  if (answer.verdict === 'pass') return PASS
  return answer.verdict === 'fail' ? fail(answer.reason) : broken(answer.reason)
}

/** Brings any verdict to what a receipt can hold; a score outside of 0 to 1 makes it an error of the gate. */
export function normaliseVerdict(verdict: GateVerdict): GateVerdict {
  if (verdict.score !== undefined && !isScore(verdict.score))
    return { ...broken('bad_score'), ...(verdict.costNano !== undefined && { costNano: verdict.costNano }) }
  return {
    ...verdict,
    ...(verdict.reason !== undefined && { reason: note(verdict.reason) }),
    ...(verdict.evidenceRef !== undefined && { evidenceRef: note(verdict.evidenceRef) }),
  }
}

/** The receipt counts UTF-16 units, and no character is cut in two. */
function note(text: string): string {
  const cut = text.toWellFormed().slice(0, NOTE_CHARS)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}
