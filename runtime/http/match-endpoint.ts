import type { Endpoint } from '../../shared/wire/endpoint.ts'

interface Fork {
  literal: Map<string, Fork>
  any: Fork | undefined
  endpoint: Endpoint | undefined
}

const fork = (): Fork => ({ literal: new Map(), any: undefined, endpoint: undefined })

/** Finds the operation behind a method and a path. A literal segment wins over a parameter; HEAD is its GET. */
export function endpointMatcher(
  endpoints: readonly Endpoint[],
): (method: string, path: string) => Endpoint | undefined {
  const roots = new Map<string, Fork>()
  for (const endpoint of endpoints) {
    let at = roots.get(endpoint.method) ?? fork()
    roots.set(endpoint.method, at)
    for (const segment of endpoint.path.slice(1).split('/')) at = step(at, segment)
    at.endpoint = endpoint
  }
  return (method, path) => {
    const root = roots.get(method === 'HEAD' ? 'GET' : method)
    return root && find(root, path.slice(1).split('/'), 0)
  }
}

function step(at: Fork, segment: string): Fork {
  if (segment.startsWith('{')) {
    at.any ??= fork()
    return at.any
  }
  const known = at.literal.get(segment)
  if (known !== undefined) return known
  const made = fork()
  at.literal.set(segment, made)
  return made
}

function find(at: Fork, segments: readonly string[], depth: number): Endpoint | undefined {
  const segment = segments[depth]
  if (segment === undefined) return at.endpoint
  const literal = at.literal.get(segment)
  const found = literal && find(literal, segments, depth + 1)
  if (found !== undefined) return found
  return at.any !== undefined && segment !== '' ? find(at.any, segments, depth + 1) : undefined
}
