import { budgetFor } from '../../models/model-table.ts'
import { isEffort } from '../adapt/draft.ts'
import { isArray, isObject, type Json, type JsonObject } from '../json-value.ts'
import type { Ledger } from './ledger.ts'

const PLAIN: ReadonlySet<string> = new Set(['low', 'medium', 'high'])
const NO_THINKING = new Set(['none', 'minimal'])

export interface EffortContext {
  /** The wire name of the rung's model. */
  readonly model: string
  readonly maxTokens: number
  /** The client wants a call of a tool, whatever the model thinks. */
  readonly isForced: boolean
  /** The last turn brings results of tools, whose calls came without the thinking that led to them. */
  readonly afterTools: boolean
}

export interface Effort {
  readonly thinking?: JsonObject
  readonly outputConfig?: JsonObject
}

/**
 * An effort as the model of the rung can be asked for it. It is a wish, so where the model, the history or the limit leaves no room for
 * thinking it is left out: an answer without it is better than a refusal.
 */
export function readEffort(effort: Json | undefined, context: EffortContext, book: Ledger): Effort {
  if (effort === undefined) return {}
  const none = () => {
    book.drop('reasoning_effort')
    return {}
  }
  if (effort === null) return none()
  const how = thinkingOf(context.model)
  if (typeof effort === 'string' && NO_THINKING.has(effort)) {
    return how === 'none' ? none() : { thinking: { type: 'disabled' } }
  }
  if (!isEffort(effort) || !(book.lenient || PLAIN.has(effort))) {
    book.refuse('reasoning_effort', 'expected none, minimal, low, medium or high')
    return {}
  }
  if (how === 'none') return none()
  if (context.isForced) {
    if (book.lenient) book.advise('reasoning_effort', 'a forced tool call excludes thinking')
    else book.refuse('tool_choice', 'a forced tool call excludes thinking')
    return {}
  }
  if (how === 'adaptive') return { thinking: { type: 'adaptive' }, outputConfig: { effort } }
  const fitting = budgetFor(effort, context.maxTokens)
  // A turn that goes on after tools must begin with its thinking, and the chat dialect has none to give back.
  if (fitting === undefined || context.afterTools) return none()
  return { thinking: { type: 'enabled', budget_tokens: fitting } }
}

/** How a model is asked to think: by a budget, on its own with an effort (budgets are refused), or not at all. */
function thinkingOf(model: string): 'budget' | 'adaptive' | 'none' {
  const name = model.toLowerCase()
  if (/claude-(?:2|instant|3-(?!7)|3\.[0-6])/.test(name)) return 'none'
  const found = /claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(name)
  if (found === null) return 'budget'
  const [, family, major, minor] = found
  const isNewer = Number(major) >= 5 || (family === 'opus' && Number(major) === 4 && Number(minor ?? 0) >= 7)
  return isNewer ? 'adaptive' : 'budget'
}

/** Whether the conversation waits for what the model makes of results of tools. */
export function endsWithToolResult(turns: readonly Json[]): boolean {
  const last = turns.at(-1)
  if (!isObject(last) || !isArray(last.content)) return false
  return last.content.some(block => isObject(block) && block.type === 'tool_result')
}
