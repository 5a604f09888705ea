import { parse, TomlError } from 'smol-toml'
import { type BuiltinPrices, PRICE_TABLE_VERSION } from '../../shared/prices/builtin.ts'
import { CanonicalError } from '../../shared/sign/jcs.ts'
import { type Mode, modes } from '../../shared/wire/router/conventions.ts'
import { configHash, priceTableHash } from './fingerprint.ts'
import { freeze, named } from './frozen.ts'
import { tomlLocator } from './locate.ts'
import { type ConfigProblem, type Problems, problemList } from './problem.ts'
import { resolveBudget } from './resolve-budget.ts'
import { resolveGates } from './resolve-gates.ts'
import { modelResolver, resolvePrices } from './resolve-models.ts'
import { resolveProviders, type Vars } from './resolve-providers.ts'
import { resolveRoutes } from './resolve-routes.ts'
import {
  checkCalibration,
  resolveCalibration,
  resolveLearning,
  resolveLimits,
  resolveStore,
  resolveStream,
} from './resolve-settings.ts'
import type { RoutingConfig } from './routing-config.ts'
import { readTables } from './schema.ts'

export interface LoadOptions {
  /** Name of the file, for messages. */
  file?: string
  /** Read: ROUTER_MODE, ROUTER_UPSTREAM_MESSAGES, ROUTER_UPSTREAM_CHAT. Keys of providers are never looked at here. */
  env?: Vars
  builtinPrices?: BuiltinPrices
  hostHasProcesses: boolean
  /** Reads a schema file by the name in the config; relative names are the host's to resolve. */
  readFile?: (path: string) => string
  /** Names of the gate functions given to the library. */
  functions?: Iterable<string>
}

export type LoadResult = { ok: true; config: RoutingConfig } | { ok: false; problems: ConfigProblem[] }

/**
 * Reads a routing config: TOML text, or the same as an object. Strict, and complete in its complaints: one run lists
 * everything that is wrong. An empty text is the config of a router that has none.
 */
export function loadConfig(source: string | object, options: LoadOptions): LoadResult {
  const read =
    typeof source === 'string' ? readToml(source, options.file ?? 'config') : readObject(source, options.file)
  if (read.document === undefined) return { ok: false, problems: read.problems.all() }
  const { problems } = read
  try {
    const config = resolveConfig(problems, read.document, options)
    if (!problems.any()) return { ok: true, config: sealConfig(config) }
  } catch (error) {
    // Text with half a surrogate pair has no canonical bytes; only an object can hold such text.
    if (!(error instanceof CanonicalError)) throw error
    problems.atValue([], error.message)
  }
  return { ok: false, problems: problems.all() }
}

interface Document {
  problems: Problems
  document: Record<string, unknown> | undefined
}

function readToml(source: string, file: string): Document {
  // Editors do not count a byte order mark as a column.
  const text = source.startsWith('\ufeff') ? source.slice(1) : source
  try {
    return { document: parse(text), problems: problemList(file, tomlLocator(text)) }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const { line, column } = error
    const problems = problemList(file, { key: () => ({ line, column }), value: () => ({ line, column }) })
    problems.atValue([], syntaxMessage(error))
    return { document: undefined, problems }
  }
}

/** The parser's sentence without the drawing that follows it. */
function syntaxMessage({ message }: TomlError): string {
  return `not TOML: ${message.replace(/^Invalid TOML document: /, '').split('\n', 1)[0]}`
}

function readObject(source: object, file = 'config'): Document {
  return { document: source as Record<string, unknown>, problems: problemList(file) }
}

type Unsealed = Omit<RoutingConfig, 'configHash' | 'priceTableHash'>

function resolveConfig(problems: Problems, document: Record<string, unknown>, options: LoadOptions): Unsealed {
  const { env = {}, builtinPrices: builtin } = options
  const mode = readMode(problems, env.ROUTER_MODE)
  const tables = readTables(problems, document)
  const limits = resolveLimits(tables.limits)
  const providers = resolveProviders(problems, tables.providers, env, limits)
  const pricing = {
    builtin: tables.pricing.builtin,
    unpriced: tables.pricing.unpriced,
    table: PRICE_TABLE_VERSION,
    overrides: resolvePrices(problems, tables.prices, providers),
  }
  const models = modelResolver({
    problems,
    providers,
    models: tables.models,
    prices: tables.prices,
    pricing,
    builtin,
  })
  const host = {
    hasProcesses: options.hostHasProcesses,
    readFile: options.readFile,
    functions: new Set(options.functions),
  }
  const gates = resolveGates(tables.gates, { problems, models, host })
  const budget = resolveBudget(tables.budget)
  const routes = resolveRoutes(tables.routes, {
    problems,
    providers,
    models,
    gates,
    defaults: tables.defaults,
    budget,
    mode,
  })
  if (mode === 'enforce' && tables.routes.length === 0)
    problems.outside('ROUTER_MODE', 'enforce needs a routing config with a [[route]] that has a ladder')
  checkCalibration(problems, tables.calibration)
  return {
    version: 1,
    mode,
    routes,
    gates: gates.usable,
    providers: providers.usable,
    budget,
    tenants: named([...tables.tenants].map(([tenant, table]) => [tenant, resolveBudget(table)])),
    calibration: resolveCalibration(tables.calibration.value),
    learning: resolveLearning(tables.learning),
    stream: resolveStream(tables.stream),
    limits,
    store: resolveStore(tables.store),
    pricing,
  }
}

function readMode(problems: Problems, given: string | undefined): Mode {
  const mode = given ? modes.find(known => known === given) : 'observe'
  if (mode === undefined) problems.outside('ROUTER_MODE', 'expected observe or enforce')
  return mode ?? 'observe'
}

function sealConfig(config: Unsealed): RoutingConfig {
  return freeze({ ...config, configHash: configHash(config), priceTableHash: priceTableHash(config) })
}
