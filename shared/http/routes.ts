export interface MountedRoute {
  method: string
  /** In the framework's spelling: `/v1/traces/:id`. */
  path: string
}

/** The methods that a path takes, so that a wrong method can be told from a wrong path. Middleware does not count. */
export function allowedMethods(routes: readonly MountedRoute[]): (path: string) => readonly string[] {
  const byPath = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  for (const { method, path } of routes) {
    if (method === 'ALL') continue
    const known = byPath.get(path) ?? { pattern: toPattern(path), methods: new Set<string>() }
    known.methods.add(method)
    if (method === 'GET') known.methods.add('HEAD')
    byPath.set(path, known)
  }
  const all = [...byPath.values()]
  return path => [...new Set(all.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => [...methods]))]
}

function toPattern(path: string): RegExp {
  const parts = path.split(/:\w+/).map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^/]+')}$`)
}
