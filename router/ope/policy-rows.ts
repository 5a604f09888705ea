/** One logged decision beside what another policy would have decided (docs/spec/router.md §7.7). */
export interface PolicyRow {
  /** What the two policies see of a request; requests that look alike share a mean. */
  readonly context: string
  /** The route of the context: its starts are other starts than those of another route. */
  readonly route: string
  /** The start that was made, and the one that the target makes. */
  readonly logged: string
  readonly target: string
  /** The chance that the logged start had, above 0. */
  readonly propensity: number
  /** Dollars spent, or 1 for an answer that failed and 0 for one that did not. */
  readonly value: number
}

export type PolicyRows = ReturnType<typeof policyRows>

/** Rows as columns of numbers: 28 bytes each, so that a resample of a whole store fits into memory. */
export function policyRows() {
  const contexts = names()
  const routes = names()
  const actions = names()
  /** By context. */
  const routeOf: number[] = []
  const context = column(Int32Array)
  const logged = column(Int32Array)
  const target = column(Int32Array)
  const propensity = column(Float64Array)
  const value = column(Float64Array)

  return {
    add(row: PolicyRow): void {
      const seen = contexts.id(`${row.route}\n${row.context}`)
      routeOf[seen] = routes.id(row.route)
      context.push(seen)
      logged.push(actions.id(row.logged))
      target.push(actions.id(row.target))
      propensity.push(row.propensity)
      value.push(row.value)
    },
    get size(): number {
      return value.size()
    },
    columns: () => ({
      context: context.filled(),
      logged: logged.filled(),
      target: target.filled(),
      propensity: propensity.filled(),
      value: value.filled(),
      routeOf,
      actions: actions.all,
    }),
  }
}

export type PolicyColumns = ReturnType<PolicyRows['columns']>

/** Small numbers for words that come again and again. */
function names() {
  const ids = new Map<string, number>()
  const all: string[] = []
  return {
    all: all as readonly string[],
    id(name: string): number {
      const known = ids.get(name)
      if (known !== undefined) return known
      ids.set(name, all.length)
      return all.push(name) - 1
    },
  }
}

const FIRST_SIZE = 1024

/** Numbers in one piece of memory that doubles when it is full. */
export function column<T extends Int32Array | Float64Array>(type: new (size: number) => T) {
  let cells = new type(FIRST_SIZE)
  let size = 0
  return {
    size: () => size,
    push(cell: number): void {
      if (size === cells.length) {
        const larger = new type(size * 2)
        larger.set(cells)
        cells = larger
      }
      cells[size++] = cell
    },
    filled: () => cells.subarray(0, size) as T,
  }
}
