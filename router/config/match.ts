import { canonicalize } from '../../shared/sign/jcs.ts'
import { inboundApis } from '../../shared/wire/router/conventions.ts'
import { named } from './frozen.ts'
import { globMatches } from './glob.ts'
import { isCredentialHeader, isHeaderName } from './header-names.ts'
import type { Path } from './locate.ts'
import { suggestion } from './nearest.ts'
import type { Problems } from './problem.ts'
import { nameOf } from './read-table.ts'
import { globKeys, type MatchTable } from './route-table.ts'
import type { RouteMatch } from './routing-config.ts'

/** Patterns in lower case, each once and in order, so that equal matches look equal. */
export function resolveMatch(table: MatchTable): RouteMatch {
  const { has_tools, has_images, stream, min_body_bytes, max_body_bytes, header } = table
  const globs = Object.fromEntries(
    globKeys.flatMap(key => {
      const given = table[key]
      return given === undefined ? [] : [[key, lowered(typeof given === 'string' ? [given] : given)]]
    }),
  )
  const headers = Object.entries(header ?? {}).map(([name, glob]) => [name.toLowerCase(), glob.toLowerCase()] as const)
  return {
    ...globs,
    ...(has_tools !== undefined && { has_tools }),
    ...(has_images !== undefined && { has_images }),
    ...(stream !== undefined && { stream }),
    ...(min_body_bytes !== undefined && { min_body_bytes }),
    ...(max_body_bytes !== undefined && { max_body_bytes }),
    ...(headers.length > 0 && { header: named(headers) }),
  }
}

const lowered = (globs: readonly string[]) => [...new Set(globs.map(glob => glob.toLowerCase()))].sort()

export function sameMatch(a: RouteMatch, b: RouteMatch): boolean {
  return canonicalize(a) === canonicalize(b)
}

export function checkMatch(problems: Problems, path: Path, table: MatchTable): void {
  const { min_body_bytes: min, max_body_bytes: max } = table
  if (min !== undefined && max !== undefined && min > max) {
    const at = [...path, 'max_body_bytes']
    problems.atValue(at, `${nameOf(at)}: expected at least min_body_bytes, which is ${min}`)
  }
  for (const name of Object.keys(table.header ?? {})) {
    const at = [...path, 'header', name]
    if (!isHeaderName(name)) problems.atKey(at, `${nameOf(at)}: not a header name`)
    else if (isCredentialHeader(name))
      problems.atKey(at, `${nameOf(at)}: this header carries a key, and routes never look at keys`)
  }
  const apis = typeof table.api === 'string' ? [table.api] : (table.api ?? [])
  apis.forEach((glob, i) => {
    if (inboundApis.some(api => globMatches(glob, api))) return
    const at = typeof table.api === 'string' ? [...path, 'api'] : [...path, 'api', i]
    problems.atValue(
      at,
      `${nameOf(at)}: none of ${inboundApis.join(', ')} matches "${glob}"${suggestion(glob, inboundApis)}`,
    )
  })
}
