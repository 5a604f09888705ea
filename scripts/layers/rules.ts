import { basename, dirname } from 'node:path'
import { type Import, LONGEST_FUNCTION, type Source } from './source.ts'

export interface Violation {
  rule: string
  path: string
  line: number
  message: string
}

/** Folders that may know the machine they run on. */
const HOST_FOLDER =
  /(?:^|\/)(?:host|cli)\/|^(?:node-agent|wrangler-local|scripts|tests|docs)\/|(?:^|\/)testing\/|\.test\.ts$/

/** Packages that only such a folder may load: they bind to Node, to sockets or to a process. */
const HOST_PACKAGES =
  /^(?:node:.*|@hono\/node-server(?:\/.*)?|@libsql\/client(?:\/(?!web$).*)?|drizzle-orm\/libsql(?:\/(?:node|sqlite3|ws|http|wasm))?|@connectrpc\/.*|@grpc\/.*|miniflare|undici(?:\/.*)?|clipanion|@modelcontextprotocol\/sdk\/.*stdio.*)$/

const FORBIDDEN_NAME = /(?:^|\/)(?:utils?|helpers?|common|lib|misc)(?:\/|\.ts$)/i
const PRODUCT = /^(?:runtime|router|node-agent|shared|wrangler-local)\//

/** What a node is made of: the runtime as a library, the tunnel's other end, and how providers are read. */
const FOR_NODES = /^runtime\/(?:execution\/|nodes\/|runtime\.ts$|providers\/environment\.ts$)/

const part = (path: string) => path.split('/')[0]!

/** The floors of the runtime: a feature imports from its own floor and from those below it. A new folder is placed here first. */
const FLOORS = [
  ['vault', 'schema', 'http', 'json-schema', 'outbound', 'privacy'],
  ['execution', 'agents', 'secrets'],
  ['runs', 'approvals', 'webhooks', 'audit-log', 'providers'],
  ['budgets', 'overview', 'schedules', 'receipts', 'connectors', 'auth', 'mcp-grants', 'tenants', 'users'],
  ['sessions', 'retention'],
  ['nodes'],
  ['dashboard', 'mcp', 'metrics', 'telemetry', 'health', 'shards'],
  ['host'],
  ['cli'],
]

/** Undefined for the files at the top of the runtime: they assemble the features, and are imported for their settings and errors. */
function floorOf(path: string): number | undefined {
  const [top, feature, ...rest] = path.split('/')
  if (top !== 'runtime' || rest.length === 0) return undefined
  const floor = FLOORS.findIndex(features => features.includes(feature!))
  return floor === -1 ? Number.POSITIVE_INFINITY : floor
}
/** Scalars, a copy of our own value, what pages read, and code inside of a sandbox. */
const READS_JSON_ALONE =
  /^shared\/(?:json|wire)\/|^shared\/dialects\/json-|\/browser\/|\.gen\.ts$|^router\/config\/fingerprint\.ts$|^node-agent\/(?:guest\/agent|isolation\/wasm\/(?:quickjs-worker|waybill-module)\.ts$)/

/** The one reader of the body of a request, and the pages, which get no requests. */
const READS_BODIES_ALONE = /^shared\/http\/body-limit\.ts$|\/browser\/|\.gen\.ts$/

/** Files with a function that is longer than others may be. The list gets shorter, and no file is added. */
const LONG_STILL: ReadonlySet<string> = new Set([
  'router/assemble.ts',
  'router/enforce/call-upstream.ts',
  'router/enforce/cascade.ts',
  'router/enforce/enforce.ts',
  'router/host/receipt-thread/client.ts',
  'router/traces/writer.ts',
  'runtime/nodes/assemble.ts',
  'runtime/sessions/live-sessions.ts',
  'shared/host/local-client.ts',
])

/** Calls that the product makes in one place only. */
const CALL_RULES: readonly {
  rule: string
  lines: (source: Source) => readonly number[]
  exempt?: RegExp
  message: string
}[] = [
  {
    rule: 'no-recursive-mkdir',
    lines: source => source.recursiveMkdirs,
    message: 'it can spin for ever: use shared/host/make-folder.ts',
  },
  {
    rule: 'no-bare-json-parse',
    lines: source => source.jsonParses,
    exempt: READS_JSON_ALONE,
    message: 'the engine can read a wrong name: use readJson of shared/json/read-json.ts',
  },
  {
    rule: 'no-literal-spread',
    lines: source => source.literalSpreads,
    exempt: /\.gen\.ts$/,
    message: 'put the members where the spread stands',
  },
  {
    rule: 'no-long-function',
    lines: ({ path, longFunctions }) => (LONG_STILL.has(path) || part(path) === 'scripts' ? [] : longFunctions),
    message: `a function has at most ${LONGEST_FUNCTION} lines: give its parts names`,
  },
  {
    rule: 'no-whole-body',
    lines: source => source.wholeBodies,
    exempt: READS_BODIES_ALONE,
    message: 'any caller can fill the memory with a body: use readBody of shared/http/body-limit.ts, with a limit',
  },
]

/** Tests and the generators and harnesses in a `testing/` folder beside them. */
const isTest = (path: string) => /\.test\.ts$|(?:^|\/)testing\//.test(path) || part(path) === 'tests'

/** What one import may not do; each rule answers a sentence or nothing. */
const IMPORT_RULES: Record<string, (from: string, to: Import) => string | undefined> = {
  'wire-only-zod': (from, { specifier, file }) => {
    if (!from.startsWith('shared/wire/') || isTest(from)) return undefined
    const fine = file === undefined ? specifier === 'zod' : file.startsWith('shared/wire/')
    return fine ? undefined : `shared/wire may import only zod, not ${specifier}`
  },
  'shared-inward': (from, { file }) =>
    part(from) === 'shared' && !isTest(from) && file !== undefined && part(file) !== 'shared'
      ? `shared may not import ${file}`
      : undefined,
  'parts-apart': (from, { file }) => {
    if (file === undefined || !PRODUCT.test(from) || isTest(from)) return undefined
    const [own, other] = [part(from), part(file)]
    if (own === other || other === 'shared' || own === 'wrangler-local') return undefined
    if (own === 'runtime' && other === 'router' && from.startsWith('runtime/host/')) return undefined
    // The embedded node is a node of this machine.
    if (own === 'runtime' && other === 'node-agent' && from.startsWith('runtime/host/')) return undefined
    if (own === 'node-agent' && FOR_NODES.test(file)) return undefined
    return `${own} may not import ${file}`
  },
  'runtime-floors': (from, { file }) => {
    const [own, other] = [floorOf(from), file === undefined ? undefined : floorOf(file)]
    if (own === undefined || other === undefined || isTest(from)) return undefined
    if (own === Number.POSITIVE_INFINITY) return `${from} has no floor: place its folder in scripts/layers/rules.ts`
    return other > own ? `${from} may not import ${file}, which is on a floor above it` : undefined
  },
  'worker-apart': (from, { file }) => {
    const inside = 'runtime/nodes/worker/'
    if (!from.startsWith(inside) || isTest(from) || !file?.startsWith('runtime/nodes/')) return undefined
    return file.startsWith(inside) || file === 'runtime/nodes/sealed-payloads.ts'
      ? undefined
      : `the node's side may import only sealed-payloads.ts of runtime/nodes, not ${file}`
  },
  'host-only-package': (from, { specifier, typeOnly }) =>
    HOST_PACKAGES.test(specifier) && !HOST_FOLDER.test(from) && !(typeOnly && specifier === '@modelcontextprotocol/sdk')
      ? `${specifier} may be imported only in a host, a cli, or outside the portable parts`
      : undefined,
  'testing-for-tests': (from, { file }) =>
    file !== undefined && /(?:^|\/)testing\//.test(file) && !isTest(from) && part(from) !== 'scripts'
      ? `${file} is for tests only`
      : undefined,
  // An assembler may import the type of what a route needs.
  'route-by-app': (from, { file, typeOnly }) =>
    file !== undefined && basename(file) === 'route.ts' && basename(from) !== 'app.ts' && !typeOnly && !isTest(from)
      ? `${file} is mounted by its app.ts only`
      : undefined,
  'table-by-store': (from, { file }) =>
    file !== undefined && basename(file) === 'table.ts' && !/(?:^|-)store\.ts$/.test(basename(from)) && !isTest(from)
      ? `${file} is read by stores only`
      : undefined,
}

/** Every breach of the layering, in the order of the files. */
export function violations(sources: readonly Source[]): Violation[] {
  return [...sources.flatMap(ofFile), ...cycles(sources)]
}

function ofFile(source: Source): Violation[] {
  const { path, imports, globals } = source
  const found: Violation[] = []
  for (const imported of imports) {
    for (const [rule, check] of Object.entries(IMPORT_RULES)) {
      const message = check(path, imported)
      if (message !== undefined) found.push({ rule, path, line: imported.line, message })
    }
  }
  if (!HOST_FOLDER.test(path)) {
    for (const { name, line } of globals) {
      found.push({
        rule: 'host-only-global',
        path,
        line,
        message: `${name} exists only on Node: take it as a parameter`,
      })
    }
  }
  if (PRODUCT.test(path) && !isTest(path)) {
    for (const { rule, lines, exempt, message } of CALL_RULES) {
      if (exempt?.test(path)) continue
      for (const line of lines(source)) found.push({ rule, path, line, message })
    }
  }
  if (FORBIDDEN_NAME.test(path)) {
    found.push({ rule: 'named-folder', path, line: 1, message: 'name the folder for the one thing it holds' })
  }
  if (basename(path) === 'index.ts' || source.onlyReexports) {
    found.push({ rule: 'no-barrel', path, line: 1, message: 'import from the file that holds the thing' })
  }
  return found
}

/** One violation for each group of files that import each other, type imports included. */
function cycles(sources: readonly Source[]): Violation[] {
  const graph = new Map(sources.map(source => [source.path, source]))
  const state = new Map<string, 'open' | 'done'>()
  const found: Violation[] = []

  function walk(path: string, trail: readonly string[]): void {
    if (state.get(path) === 'done') return
    if (state.get(path) === 'open') {
      const loop = [...trail.slice(trail.indexOf(path)), path]
      found.push({ rule: 'no-cycle', path, line: 1, message: loop.join(' → ') })
      return
    }
    state.set(path, 'open')
    for (const { file } of graph.get(path)?.imports ?? []) {
      if (file !== undefined && graph.has(file)) walk(file, [...trail, path])
    }
    state.set(path, 'done')
  }

  for (const { path } of sources) walk(path, [])
  return found
}

/** Parts without a single file: the check would pass on nothing. */
export function emptyParts(sources: readonly Source[]): string[] {
  const seen = new Set(sources.map(({ path }) => dirname(path).split('/')[0]))
  return ['runtime', 'router', 'node-agent', 'shared', 'wrangler-local', 'scripts', 'tests'].filter(
    name => !seen.has(name),
  )
}
