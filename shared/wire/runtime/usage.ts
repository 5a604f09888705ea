import { z } from 'zod'
import { query, withAliases } from '../aliases.ts'
import { count, dayOrMoment, freeForm } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { agentName, agentNameAlias, filter, usd } from './conventions.ts'

export const MAX_USAGE_DAYS = 366

/** Days are inclusive at both ends and counted in the deployment's zone; absent ends are the route's choice. */
export const usageQuery = query(
  {
    from: dayOrMoment.optional(),
    to: dayOrMoment.optional(),
    agentName: filter,
    groupBy: z.enum(['day', 'agent', 'model']).optional(),
  },
  [{ from: 'agent', to: 'agentName' }],
)

/** What is wrong with a range of days, or nothing. */
export function rangeProblem(from: string, to: string): { path: string; message: string } | undefined {
  const days = (Date.parse(to.slice(0, 10)) - Date.parse(from.slice(0, 10))) / 86_400_000 + 1
  if (days < 1) return { path: 'to', message: 'expected a day that is not before from' }
  if (days > MAX_USAGE_DAYS) return { path: 'to', message: `expected at most ${MAX_USAGE_DAYS} days` }
  return undefined
}

export const usageItem = named(
  'Usage',
  z.object({
    day: z.string().optional(),
    agentName: z.string().optional(),
    model: z.string().optional(),
    runs: count,
    tokensIn: count,
    tokensOut: count,
    costUsd: usd,
    /** Beside the others: the most that calls may have cost which a crash cut off. */
    uncertainTokens: count,
    uncertainCostUsd: usd,
    /** Calls of models that have no price: `costUsd` holds nothing of them. */
    unpricedCalls: count,
  }),
)
export type UsageItem = z.infer<typeof usageItem>

const forecastFields = named('ForecastRequest', z.strictObject({ agentName, input: freeForm.default({}) }))

/** `input` as a plain string is the prompt. */
export const forecastRequest = withAliases(forecastFields, [
  agentNameAlias,
  {
    from: 'input',
    to: 'input',
    read: value => ({ value: typeof value === 'string' ? { prompt: value } : value }),
  },
])
export type ForecastRequest = z.input<typeof forecastFields>

export const forecast = named(
  'Forecast',
  z.object({
    estimatedTokensIn: count,
    estimatedTokensOut: count,
    /** Null: the price of the model is unknown. */
    estimatedCostUsd: usd.nullable(),
    confidence: z.number().min(0).max(1),
    /** The model has no price; a hard limit of cost cannot be held for it. */
    unpriced: z.boolean().optional(),
    wouldExceedBudget: z.boolean(),
    agentName,
    model: z.string(),
    basis: z.enum(['history', 'manifest']),
    sampleSize: count,
    p90CostUsd: usd.optional(),
    blockReason: z.string().optional(),
  }),
)
export type Forecast = z.infer<typeof forecast>
