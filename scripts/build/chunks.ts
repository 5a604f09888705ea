import type { CodeSplittingGroup, Plugin } from 'rolldown'

/** By the name of a program: the modules that it imports at its start, one after the other. */
export type Programs = Readonly<Record<string, readonly string[]>>

export interface Graph {
  modules: readonly string[]
  importsOf(id: string): readonly string[]
  dynamicImportsOf(id: string): readonly string[]
}

/** The user of all that is imported only when it is needed. */
const LATER = 'later'

/** Which programs load each module at their start. */
export function usersOf(programs: Programs, { modules, importsOf, dynamicImportsOf }: Graph): Map<string, Set<string>> {
  const users = new Map<string, Set<string>>()
  const reach = (name: string, from: readonly string[]) => {
    const open = [...from]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const known = users.get(id) ?? new Set()
      users.set(id, known)
      if (known.has(name)) continue
      known.add(name)
      open.push(...importsOf(id))
    }
  }
  for (const [name, from] of Object.entries(programs)) reach(name, from)
  const atStart = new Set(Object.values(programs).flat())
  reach(
    LATER,
    modules.flatMap(dynamicImportsOf).filter(id => !atStart.has(id)),
  )
  return users
}

/**
 * Modules with the same users stand in one file: to find and compile a hundred small ones takes longer than to run them, and in this way no
 * program loads a module that it does not use. What is only imported later stays with the module that asks for it, and so does a module that
 * begins a program: it may wait for an import that needs what would stand beside it.
 */
export function oneFileForTheSameUsers(
  programs: Programs,
  alone: ReadonlySet<string>,
): { plugin: Plugin; groups: CodeSplittingGroup[] } {
  const names = new Map<string, string>()
  let users = new Map<string, Set<string>>()
  function nameFor(id: string, howMany: number): string | undefined {
    const found = users.get(id)
    if (alone.has(id) || found?.size !== howMany || (howMany === 1 && found.has(LATER))) return undefined
    const key = [...found].sort().join()
    const known = names.get(key)
    if (known !== undefined) return known
    const [only, second] = [...found].filter(name => name !== LATER)
    const name = second === undefined ? only! : `common-${names.size}`
    names.set(key, name)
    return name
  }
  return {
    plugin: {
      name: 'users-of-modules',
      buildEnd() {
        users = usersOf(programs, {
          modules: [...this.getModuleIds()],
          importsOf: id => this.getModuleInfo(id)?.importedIds ?? [],
          dynamicImportsOf: id => this.getModuleInfo(id)?.dynamicallyImportedIds ?? [],
        })
      },
    },
    // A module has all the users of the one that imports it: from the most users to the fewest, what one imports is placed already or has the same users.
    groups: Array.from({ length: Object.keys(programs).length + 1 }, (_, index) => ({
      debugName: `${index + 1} users`,
      name: (id: string) => nameFor(id, index + 1),
      priority: index + 1,
      includeDependenciesRecursively: false,
    })),
  }
}
