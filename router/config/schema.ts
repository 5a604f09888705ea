import type { z } from 'zod'
import { type GateTable, gateKinds, isGateKind } from '../gates/gate-kinds.ts'
import { type BudgetTable, budgetTable, tenantTable } from './budget-table.ts'
import { type CalibrationTable, calibrationTable, type LearningTable, learningTable } from './learning-tables.ts'
import type { Path } from './locate.ts'
import { type PriceTable, type PricingTable, priceTable, pricingTable } from './price-table.ts'
import type { Problems } from './problem.ts'
import { type ModelTable, modelTable, type ProviderTable, providerTable } from './provider-table.ts'
import { isTable, missing, nameOf, type Read, readTable, unknownKey } from './read-table.ts'
import { type DefaultsTable, defaultsTable, type RouteTable, routeTable } from './route-table.ts'
import {
  type LimitsTable,
  limitsTable,
  type StoreTable,
  type StreamTable,
  storeTable,
  streamTable,
} from './service-tables.ts'
import { suggestion } from './suggestion.ts'

/** One entry of a list of tables; `read` is undefined when it does not hold together. */
export interface Row<T> {
  path: Path
  given: Record<string, unknown>
  read: Read<T> | undefined
}

export type Rows<T> = readonly Row<T>[]

/** A config after each table has been checked for itself; the checks across tables come next. */
export interface Tables {
  defaults: Read<DefaultsTable>
  routes: Rows<RouteTable>
  gates: Rows<GateTable>
  providers: Rows<ProviderTable>
  models: Rows<ModelTable>
  prices: Rows<PriceTable>
  pricing: PricingTable
  budget: BudgetTable
  tenants: ReadonlyMap<string, BudgetTable>
  calibration: Read<CalibrationTable>
  learning: LearningTable
  stream: StreamTable
  limits: LimitsTable
  store: StoreTable
}

/** What may stand at the top of a config. */
export const topKeys = [
  'version',
  'defaults',
  'route',
  'gate',
  'provider',
  'model',
  'price',
  'pricing',
  'budget',
  'tenant',
  'calibration',
  'learning',
  'stream',
  'limits',
  'store',
] as const

/** docs/spec/router.md §6.1. */
export function readTables(problems: Problems, document: Record<string, unknown>): Tables {
  for (const key of Object.keys(document)) {
    if (!(topKeys as readonly string[]).includes(key)) unknownKey(problems, [key], topKeys)
  }
  if (document.version !== undefined && document.version !== 1)
    problems.atValue(['version'], `${nameOf(['version'])}: expected 1, the only version there is`)

  const table = <S extends z.ZodObject>(name: string, schema: S): Read<z.output<S>> => {
    const given = Object.hasOwn(document, name) ? document[name] : undefined
    const read = given === undefined ? undefined : readTable(problems, [name], schema, given)
    return read ?? { value: schema.parse({}), bad: new Set() }
  }
  const rows = <T>(name: string, read: (path: Path, given: Record<string, unknown>) => Read<T> | undefined): Row<T>[] =>
    listOf(problems, document, name).map(({ path, given }) => ({ path, given, read: read(path, given) }))

  return {
    defaults: table('defaults', defaultsTable),
    routes: rows('route', (path, given) => readTable(problems, path, routeTable, given)),
    gates: rows('gate', (path, given) => readGate(problems, path, given)),
    providers: rows('provider', (path, given) => readTable(problems, path, providerTable, given)),
    models: rows('model', (path, given) => readTable(problems, path, modelTable, given)),
    prices: rows('price', (path, given) => readTable(problems, path, priceTable, given)),
    pricing: table('pricing', pricingTable).value,
    budget: table('budget', budgetTable).value,
    tenants: readTenants(problems, document.tenant),
    calibration: table('calibration', calibrationTable),
    learning: table('learning', learningTable).value,
    stream: table('stream', streamTable).value,
    limits: table('limits', limitsTable).value,
    store: table('store', storeTable).value,
  }
}

function listOf(problems: Problems, document: Record<string, unknown>, name: string) {
  const given = Object.hasOwn(document, name) ? document[name] : []
  if (!Array.isArray(given)) {
    problems.atValue([name], `"${name}" at the top level: expected [[${name}]], an array of tables`)
    return []
  }
  return given.flatMap((item: unknown, i) => {
    const path: Path = [name, i]
    if (isTable(item)) return [{ path, given: item }]
    problems.atValue(path, `[[${name}]] #${i + 1}: expected a table`)
    return []
  })
}

function readGate(problems: Problems, path: Path, given: Record<string, unknown>): Read<GateTable> | undefined {
  const { kind } = given
  const at = [...path, 'kind']
  if (isGateKind(kind)) return gateKinds[kind].read(problems, path, given)
  if (kind === undefined) problems.atValue(at, missing(at))
  else {
    const known = Object.keys(gateKinds)
    const meant = typeof kind === 'string' ? suggestion(kind, known) : ''
    problems.atValue(at, `${nameOf(at)}: expected one of ${known.join(', ')}${meant}`)
  }
  return undefined
}

const TENANT = /^[A-Za-z0-9._-]{1,64}$/

function readTenants(problems: Problems, given: unknown): Map<string, BudgetTable> {
  const tenants = new Map<string, BudgetTable>()
  if (given === undefined) return tenants
  if (!isTable(given)) {
    problems.atValue(['tenant'], '"tenant" at the top level: expected tables [tenant.<id>.budget]')
    return tenants
  }
  for (const [tenant, value] of Object.entries(given)) {
    const path = ['tenant', tenant]
    if (!TENANT.test(tenant))
      problems.atKey(path, `${nameOf(path)}: expected a tenant of 1 to 64 letters, digits, '.', '_' or '-'`)
    const read = readTable(problems, path, tenantTable, value)
    if (read?.value.budget !== undefined) tenants.set(tenant, read.value.budget)
  }
  return tenants
}

/** Reports names used twice, and gives the first entry of each name. */
export function uniqueRows<T>(problems: Problems, rows: Rows<T>, key: string): Map<string, Row<T>> {
  const first = new Map<string, Row<T>>()
  for (const row of rows) {
    const name = row.given[key]
    if (typeof name !== 'string') continue
    const other = first.get(name)
    if (other === undefined) first.set(name, row)
    else {
      const [list, ix] = other.path
      problems.atValue(
        [...row.path, key],
        `${nameOf([...row.path, key])}: "${name}" is already taken by [[${list}]] #${Number(ix) + 1}${problems.lineOf(other.path)}`,
      )
    }
  }
  return first
}
