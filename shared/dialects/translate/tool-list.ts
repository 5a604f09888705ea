import type { Json } from '../json-value.ts'
import { isArray } from '../json-value.ts'
import type { Ledger } from './ledger.ts'

/** The tools of a request; undefined where it has none, which is dropped, or where they are no list, which is refused. */
export function readToolList(tools: Json | undefined, book: Ledger): readonly Json[] | undefined {
  if (tools === undefined) return undefined
  if (tools === null || (isArray(tools) && tools.length === 0)) {
    book.drop('tools')
    return undefined
  }
  if (isArray(tools)) return tools
  book.refuse('tools', 'expected a list')
  return undefined
}

/** Tools that run at the provider and that clients offer without being asked: searches, pages, code, and groups of further tools. */
const OFFERED = /^(?:web_search|web_fetch|code_execution|tool_search)(?:_[a-z_]*)?(?:_\d{8})?$|^namespace$/

/**
 * The indexes of tools that only another provider could run and that the request merely offers: it has tools of its own as well, and asks for
 * none in particular. A request that is about such a tool alone is for that provider.
 */
export function offeredTools(
  types: readonly (string | undefined)[],
  choice: Json | undefined,
  book: Ledger,
): ReadonlySet<number> {
  const isFree = choice === undefined || choice === null || choice === 'auto' || choice === 'none'
  const offered = types.flatMap((type, i) => (type !== undefined && OFFERED.test(type) ? [i] : []))
  if (!book.lenient || !isFree || offered.length === types.length) return new Set()
  return new Set(offered)
}
