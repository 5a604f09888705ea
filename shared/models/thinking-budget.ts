import type { Effort } from './accepted.ts'

/** Thinking budgets for the levels of effort that turn it on. */
const BUDGETS: Readonly<Partial<Record<Effort, number>>> = {
  low: 1024,
  medium: 4096,
  high: 16_384,
  xhigh: 32_768,
  max: 32_768,
}

export const LEAST_BUDGET = 1024

/** The budget for an effort within a limit of the answer, half of which stays for what is said; undefined where no thinking fits. */
export function budgetFor(effort: Effort, maxTokens: number): number | undefined {
  const budget = BUDGETS[effort]
  if (budget === undefined) return undefined
  const fitting = Math.min(budget, Math.floor(maxTokens / 2))
  return fitting < LEAST_BUDGET ? undefined : fitting
}

/** The effort that a budget stands for. */
export function effortFor(budget: number): 'low' | 'medium' | 'high' {
  return budget <= 2048 ? 'low' : budget <= 8192 ? 'medium' : 'high'
}
