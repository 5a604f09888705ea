import { ApiError } from '../../shared/http/api-error.ts'
import { toUsd } from '../../shared/money/money.ts'
import type { Refusal } from './limits.ts'

const WORDS = {
  runsPerDay: 'runs a day (maxRunsPerDay)',
  costPerDay: 'USD a day (maxCostUsdPerDay)',
  costPerRun: 'USD a run (maxCostUsdPerRun)',
  tokensPerDay: 'tokens a day (maxTokensPerDay)',
} as const

/** As the wire counts it: dollars for money. */
export function onWire({ dimension, limit, used }: Refusal): Refusal {
  const money = dimension === 'costPerDay' || dimension === 'costPerRun'
  return { dimension, limit: money ? toUsd(limit) : limit, used: money ? toUsd(used) : used }
}

export function inWords(agentName: string, refusal: Refusal): string {
  const { dimension, limit, used } = onWire(refusal)
  return `the budget of ${agentName} is ${limit} ${WORDS[dimension]}, of which ${used} is used or held`
}

const SAID = /is (\S+) [^,]*\(max(\w+)\), of which (\S+) is used or held$/

/** What `inWords` said, for whoever has only the words: a run keeps its failure as a code and a sentence. */
export function fromWords(text: string): Refusal | undefined {
  const [, limit, name, used] = SAID.exec(text) ?? []
  const dimension = (Object.keys(WORDS) as Refusal['dimension'][]).find(one => WORDS[one].endsWith(`(max${name})`))
  return dimension && { dimension, limit: Number(limit), used: Number(used) }
}

/** 402: nothing was made and nothing is billed. */
export function budgetExceeded(agentName: string, refusal: Refusal): ApiError<'budget_exceeded'> {
  return new ApiError('budget_exceeded', inWords(agentName, refusal), { members: { ...onWire(refusal) } })
}
