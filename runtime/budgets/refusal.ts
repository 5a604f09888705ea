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
export function onWire({ dimension, limit, used }: Refusal): Omit<Refusal, 'unpriced' | 'of'> {
  const money = dimension === 'costPerDay' || dimension === 'costPerRun'
  return { dimension, limit: money ? toUsd(limit) : limit, used: money ? toUsd(used) : used }
}

export function inWords(caller: string, refusal: Refusal): string {
  const agentName = refusal.of ?? caller
  const { dimension, limit, used } = onWire(refusal)
  const words = limit === 1 ? WORDS[dimension].replace(/^(run|token)s/, '$1') : WORDS[dimension]
  if (refusal.unpriced !== undefined) {
    return `${agentName} has a hard limit of ${limit} ${words}, which cannot be held: ${noPrice(refusal.unpriced)}`
  }
  return `the budget of ${agentName} is ${limit} ${words}, of which ${used} is used or reserved`
}

/** What is missing, and how it is given. */
export function noPrice(model: string): string {
  const price = `{"prices": {"${model}": {"inPerMTok": 1, "outPerMTok": 2}}}`
  return `${model} has no price. Give it a price in USD per million tokens with PUT /v1/settings/models (${price}), or limit its tokens (maxTokensPerDay)`
}

const UNHELD = / has a hard limit of (\S+) [^,]*\(max(\w+)\), which cannot be held: /
const SAID = /is (\S+) [^,]*\(max(\w+)\), of which (\S+) is used or reserved$/

/** What `inWords` said, for a reader that has only the words: a run keeps its failure as a code and a sentence. */
export function fromWords(text: string): Refusal | undefined {
  const [, limit, name, used = 0] = SAID.exec(text) ?? UNHELD.exec(text) ?? []
  const dimension = (Object.keys(WORDS) as Refusal['dimension'][]).find(one => WORDS[one].endsWith(`(max${name})`))
  return dimension && { dimension, limit: Number(limit), used: Number(used) }
}

/** 402: nothing was made and nothing is billed. */
export function budgetExceeded(agentName: string, refusal: Refusal): ApiError<'budget_exceeded'> {
  return new ApiError('budget_exceeded', inWords(agentName, refusal), { members: { ...onWire(refusal) } })
}
