/** What a server says of the tokens that it wants: the parameters of its Bearer challenge (RFC 9110, RFC 6750, RFC 9728). */
export interface Challenge {
  resourceMetadata?: string
  scope?: string
}

const BEARER = /(?:^|,)\s*Bearer(?:\s+|$)/i
const PARAMETER = /^\s*,?\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/

/** Undefined where no Bearer token is asked for. */
export function bearerChallenge(header: string | null): Challenge | undefined {
  const found = BEARER.exec(header ?? '')
  if (!found) return undefined
  const challenge: Challenge = {}
  let rest = header!.slice(found.index + found[0].length)
  // What is no parameter begins the challenge of another scheme.
  for (let next = PARAMETER.exec(rest); next; next = PARAMETER.exec(rest)) {
    const [all, name = '', quoted, plain = ''] = next
    const value = quoted?.replaceAll(/\\(.)/g, '$1') ?? plain
    if (name.toLowerCase() === 'resource_metadata') challenge.resourceMetadata ??= value
    if (name.toLowerCase() === 'scope') challenge.scope ??= value
    rest = rest.slice(all.length)
  }
  return challenge
}
