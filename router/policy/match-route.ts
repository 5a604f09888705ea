import type { InboundApi } from '../../shared/wire/router/conventions.ts'
import type { Route, RouteMatch } from '../config/routing-config.ts'

/** What a route's match may look at. */
export interface MatchFacts {
  readonly api: InboundApi
  readonly tenant: string
  readonly agent: string
  readonly subagent?: string | undefined
  readonly task?: string | undefined
  readonly language?: string | undefined
  /** The model the client asked for. */
  readonly model?: string | undefined
  readonly hasTools: boolean
  readonly hasImages: boolean
  readonly stream: boolean
  readonly bodyBytes: number
  /** A request header by its lower-case name. */
  readonly header: (name: string) => string | undefined
}

/** The first route whose match holds; undefined means the request is only observed. */
export function matchRoute(routes: readonly Route[], facts: MatchFacts): Route | undefined {
  return routes.find(route => matches(route.match, facts))
}

/** docs/spec/router.md §6.2: every key that is present must hold, and what a request does not have matches no pattern. */
function matches(match: RouteMatch, facts: MatchFacts): boolean {
  const holds = (globs: readonly string[] | undefined, value: string | undefined) =>
    globs === undefined || (value !== undefined && globs.some(glob => globMatches(glob, value)))
  const is = (wanted: boolean | undefined, value: boolean) => wanted === undefined || wanted === value
  return (
    holds(match.agent, facts.agent) &&
    holds(match.subagent, facts.subagent) &&
    holds(match.model, facts.model) &&
    holds(match.api, facts.api) &&
    holds(match.tenant, facts.tenant) &&
    holds(match.task, facts.task) &&
    holds(match.language, facts.language) &&
    is(match.has_tools, facts.hasTools) &&
    is(match.has_images, facts.hasImages) &&
    is(match.stream, facts.stream) &&
    facts.bodyBytes >= (match.min_body_bytes ?? 0) &&
    facts.bodyBytes <= (match.max_body_bytes ?? Number.POSITIVE_INFINITY) &&
    Object.entries(match.header ?? {}).every(([name, glob]) => holds([glob], facts.header(name)))
  )
}

/**
 * Whether a text matches a pattern in which `*` stands for any run of characters, letters of either case alike.
 * Goes back to the last star only, so its time is the product of the lengths at worst and never more.
 */
export function globMatches(glob: string, text: string): boolean {
  const pattern = glob.toLowerCase()
  const value = text.toLowerCase()
  let p = 0
  let v = 0
  let star = -1
  let resume = 0
  while (v < value.length) {
    if (pattern[p] === '*') {
      star = p++
      resume = v
    } else if (p < pattern.length && pattern[p] === value[v]) {
      p++
      v++
    } else if (star !== -1) {
      p = star + 1
      v = ++resume
    } else return false
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
