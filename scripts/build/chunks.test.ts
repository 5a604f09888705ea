import fc from 'fast-check'
import { expect, it } from 'vitest'
import { usersOf } from './chunks.ts'

const named = (users: Map<string, Set<string>>) =>
  Object.fromEntries([...users].map(([id, names]) => [id, [...names].sort().join(' ')]))

it('a module is used by each program that reaches it, and by what is imported later', () => {
  const imports: Record<string, string[]> = {
    a: ['shared', 'own'],
    b: ['shared'],
    shared: ['deep'],
    later: ['deep', 'only'],
  }
  const graph = {
    modules: ['a', 'b', 'own', 'shared', 'deep', 'later', 'only'],
    importsOf: (id: string) => imports[id] ?? [],
    dynamicImportsOf: (id: string) => (id === 'own' ? ['later'] : []),
  }
  expect(named(usersOf({ first: ['a'], second: ['b'] }, graph))).toEqual({
    a: 'first',
    b: 'second',
    own: 'first',
    shared: 'first second',
    deep: 'first later second',
    later: 'later',
    only: 'later',
  })
})

it('what a module imports has all of its users, so that files cannot need each other in a circle', () => {
  const size = 12
  const edges = fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 40 })
  fc.assert(
    fc.property(
      edges,
      edges,
      fc.uniqueArray(fc.nat(size - 1), { minLength: 1, maxLength: 4 }),
      (links, late, starts) => {
        const of = (pairs: [number, number][]) => (id: string) =>
          pairs.filter(([from]) => String(from) === id).map(([, to]) => String(to))
        const importsOf = of(links)
        const graph = {
          modules: Array.from({ length: size }, (_, id) => String(id)),
          importsOf,
          dynamicImportsOf: of(late),
        }
        const users = usersOf(Object.fromEntries(starts.map(id => [`p${id}`, [String(id)]])), graph)
        for (const [id, names] of users)
          for (const to of importsOf(id)) for (const name of names) expect(users.get(to)).toContain(name)
      },
    ),
  )
})
