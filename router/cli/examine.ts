import { constants } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { namesProxy, readEnv } from '../../shared/env/read-env.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { refuseLoneLog, refuseNetworkDisk } from '../../shared/host/open-libsql.ts'
import { toOrigin } from '../../shared/http/bind.ts'
import { silentLog } from '../../shared/log/log.ts'
import { PRICE_TABLE_VERSION } from '../../shared/prices/builtin.ts'
import { damageOf, isOfIndex } from '../../shared/sql/damage.ts'
import type { Db } from '../../shared/sql/db.ts'
import { RESTORE } from '../../shared/sql/store-faults.ts'
import { configWarnings } from '../active-config.ts'
import { declaredSource, isSearched } from '../cloud/declared-source.ts'
import { heldCredential } from '../config/credential.ts'
import { modelsOfGate } from '../config/fingerprint.ts'
import type { RoutingConfig } from '../config/routing-config.ts'
import { routerEnv } from '../env.ts'
import { readAccess } from '../host/access.ts'
import { anchorFault } from '../host/anchor-file.ts'
import { openPlaced, type PlacedStore, storePlaces } from '../host/open-store.ts'
import { fileSink } from '../host/receipt-thread/storage.ts'
import { unknownNames } from '../host/unknown-names.ts'
import { checkTail } from '../traces/boot-check.ts'
import { type KnownCopies, knownCopies } from '../traces/known-copies.ts'
import { newestRecordMs, storedTenants } from '../traces/stored-records.ts'
import { routingConfig } from './routing-config.ts'

export interface Check {
  name: string
  ok: boolean
  detail: string
}

type Vars = Readonly<Record<string, string | undefined>>

const PROBE_MS = 5000
/** A burst of calls writes some megabytes before they are back in the store's file. */
const LEAST_ROOM = 64 * 1024 ** 2
/** A clock may be this far behind the last record before times would run backwards in a way that matters. */
const CLOCK_SLACK_MS = 5000

/** Everything that `router doctor` looks at, in the order in which one thing needs the one before. */
export async function examine(vars: Vars, { probe }: { probe: boolean }): Promise<Check[]> {
  const checks = [
    await outcome('environment', async () => {
      await readAccess(readEnv(routerEnv, vars), silentLog())
      return ['every variable reads', ...unknownNames(vars)].join('; ')
    }),
  ]
  const network = namesProxy(vars) ? await import('../../shared/host/proxy-agent.ts') : undefined
  if (network) checks.push(await outcome('proxy', () => network.networkWords(vars)))
  if (!checks[0]?.ok) return checks
  const env = readEnv(routerEnv, vars)
  const config = await routingConfig(vars).then(
    active => active.config,
    (error: unknown) => toMessage(error),
  )
  if (typeof config === 'string') checks.push({ name: 'config', ok: false, detail: config })
  else checks.push(...(await ofConfig(config, vars)))
  checks.push(...(await ofStores(env.ROUTER_DB, vars)))
  if (env.ROUTER_ANCHOR_FILE !== undefined) {
    const fault = await anchorFault(env.ROUTER_ANCHOR_FILE)
    checks.push({
      name: 'anchor file',
      ok: fault === undefined,
      detail: fault ?? `${env.ROUTER_ANCHOR_FILE} takes copies`,
    })
  }
  const own = toOrigin(env.ROUTER_BIND)
  checks.push(...(await baseUrls(vars, own, probe)))
  if (!probe) return checks
  if (typeof config !== 'string') {
    for (const { id, baseUrl } of usedProviders(config)) {
      checks.push(
        await outcome(
          `provider ${id}`,
          async () => `${new URL(baseUrl).host} answers (${await statusOf(baseUrl, network?.networkOf(vars).fetch)})`,
        ),
      )
    }
  }
  return checks
}

async function ofConfig(config: RoutingConfig, vars: Vars): Promise<Check[]> {
  const rungs = config.routes.flatMap(route => route.ladder)
  const unpriced = [...new Set(rungs.filter(({ price }) => price === null).map(({ model }) => model))]
  const routes = config.routes.length
  return [
    {
      name: 'config',
      ok: true,
      detail: vars.ROUTER_CONFIG ? `${vars.ROUTER_CONFIG}, ${routes} routes` : 'none: every call is observed',
    },
    ...(config.routes.length === 0 ? [] : [ofRoutes(config)]),
    {
      name: 'prices',
      ok: unpriced.length === 0,
      detail:
        unpriced.length === 0
          ? `${config.pricing.builtin ? PRICE_TABLE_VERSION : 'only those of the config'}; every rung has one`
          : `no price for ${unpriced.join(', ')}: add a [[price]]`,
    },
    ...usedProviders(config).map(provider => {
      const held = heldCredential(provider, vars)
      const passes = provider.auth === 'passthrough'
      const searched = isSearched(provider)
      const missing = held === 'missing' && !passes && !searched
      const wants = provider.apiKeyEnv ?? provider.credentialsEnv ?? 'its key'
      const source = declaredSource(provider, vars)
      return {
        name: `key of ${provider.id}`,
        ok: !missing,
        detail: missing
          ? `set ${wants}`
          : passes
            ? "the caller's own is passed on"
            : held === 'none'
              ? 'none is wanted'
              : source !== undefined
                ? `by ${source}`
                : searched
                  ? 'no variable names a source: the first call looks in the files and the metadata service of the machine'
                  : 'set',
      }
    }),
    ...(await Promise.all(
      Object.values(config.gates).flatMap(gate =>
        gate.kind === 'subprocess'
          ? [outcome(`gate ${gate.id}`, () => findGateProgram(gate.cmd[0] ?? '', gate.cwd, vars.PATH))]
          : [],
      ),
    )),
  ]
}

function ofRoutes(config: RoutingConfig): Check {
  const warnings = configWarnings(config)
  const detail = warnings.length > 0 ? warnings.join('; ') : 'each ladder goes from the cheapest model to the dearest'
  return { name: 'routes', ok: warnings.length === 0, detail }
}

/** Those of the ladders, and those of the gates that are models. */
function usedProviders(config: RoutingConfig) {
  const judging = new Set(config.routes.flatMap(route => route.gates))
  const models = Object.values(config.gates)
    .filter(({ id }) => judging.has(id))
    .flatMap(gate => Object.values(modelsOfGate(gate.kind, gate)))
  const used = new Set([...config.routes.flatMap(route => route.ladder), ...models].map(model => model?.provider))
  return Object.values(config.providers).filter(({ id }) => used.has(id))
}

/** A gate's program, and whether there is room for the private folder that each of its runs gets. */
async function findGateProgram(program: string, cwd: string | null, path = ''): Promise<string> {
  if (cwd !== null && !(await stat(cwd).catch(() => undefined))?.isDirectory())
    throw new Error(`${cwd} is no folder, and its cwd says to run there: make it, or give another`)
  const found = await findProgram(program, cwd ?? '.', path)
  await access(tmpdir(), constants.W_OK).catch(() => {
    throw new Error(`${tmpdir()} cannot be written, so it would abstain: set TMPDIR to a folder that can be`)
  })
  return found
}

/** A program that is named by a path is found from the folder that it runs in. */
async function findProgram(program: string, cwd: string, path: string): Promise<string> {
  const places = program.includes('/')
    ? [resolve(cwd, program)]
    : path.split(delimiter).map(folder => join(folder, program))
  for (const place of places) {
    const found = await access(place, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (found) return place
  }
  throw new Error(`${program} is no program here: install it, or give its path`)
}

/** The store, or each shard of the directory. */
async function ofStores(address: string, vars: Vars): Promise<Check[]> {
  if (!vars.ROUTER_DIRECTORY_URL) return ofStore(address, vars)
  let shards: PlacedStore[]
  try {
    shards = await storePlaces(vars, undefined)
  } catch (error) {
    return [{ name: 'directory of shards', ok: false, detail: toMessage(error) }]
  }
  const all = await Promise.all(
    shards.map(async ({ address: place, shard }) =>
      (await ofStore(place, vars)).map(check => ({ ...check, name: `${check.name} (shard ${shard})` })),
    ),
  )
  const count = `${shards.length} ${shards.length === 1 ? 'shard' : 'shards'}`
  return [{ name: 'directory of shards', ok: shards.length > 0, detail: count }, ...all.flat()]
}

async function ofStore(address: string, { ROUTER_ANCHOR_FILE: anchor, ...vars }: Vars): Promise<Check[]> {
  const isPath = !/^[a-z][a-z0-9+.-]+:/i.test(address)
  if (address === ':memory:') return [{ name: 'store', ok: true, detail: 'in memory: nothing is kept' }]
  if (isPath && (await stat(address).catch(() => undefined)) === undefined) {
    const makes = async () => {
      await refuseNetworkDisk(address)
      await refuseLoneLog(address)
      return `${address} does not exist yet: the first start makes it`
    }
    return [await outcome('store', makes)]
  }
  let db: Db
  try {
    db = await openPlaced(vars, address)
  } catch (error) {
    return [{ name: 'store', ok: false, detail: toMessage(error) }]
  }
  try {
    if (db.kind === 'file') {
      const file = await outcome('store', () => whole(db, address))
      // What is read of it may be anything.
      if (!file.ok) return [file]
    }
    const tenants = await storedTenants(db)
    const files = [...(isPath ? [`${address}.checkpoints.jsonl`] : []), ...(anchor ? [anchor] : [])]
    const copies = knownCopies({ db, log: silentLog(), sha256: nativeSha256, sinks: files.map(fileSink) })
    return [
      {
        name: 'store',
        ok: true,
        detail: `${address}, ${tenants.length} ${tenants.length === 1 ? 'tenant' : 'tenants'}`,
      },
      ...(isPath ? [await outcome('disk', () => room(address))] : []),
      await outcome('clock', () => clock(db)),
      ...(await Promise.all(tenants.map(tenant => outcome(`chain of ${tenant}`, () => chain(db, tenant, copies))))),
    ]
  } finally {
    db.close()
  }
}

/** Lists and sums are read from indexes, and `verify` reads the records. */
async function whole(db: Db, address: string): Promise<string> {
  const damage = await damageOf(db)
  if (damage === undefined) return `${address} is whole`
  const advice = isOfIndex(damage)
    ? `stop the router and have SQLite make its indexes again: sqlite3 ${address} reindex`
    : `stop the router and ${RESTORE}`
  throw new Error(`${address} is damaged (${damage}): ${advice}`)
}

async function room(path: string): Promise<string> {
  const { bavail, bsize } = await statfs(dirname(path))
  const left = `${Math.round((bavail * bsize) / 1024 ** 2)} MiB left where the store is`
  if (bavail * bsize < LEAST_ROOM) throw new Error(`${left}: make room`)
  return left
}

async function clock(db: Db): Promise<string> {
  const newest = await newestRecordMs(db)
  if (newest === undefined) return 'no record to compare it with'
  if (Date.now() + CLOCK_SLACK_MS < newest)
    throw new Error(`the clock is behind the last record (${new Date(newest).toISOString()}): set it right`)
  return `after the last record (${new Date(newest).toISOString()})`
}

async function chain(db: Db, tenant: string, copies: KnownCopies): Promise<string> {
  const broken = await checkTail(db, tenant, nativeSha256)
  if (broken !== undefined) throw new Error(`broken at seq ${broken.seq} (${broken.reason}): run \`router verify\``)
  const [later] = await copies.foreign(tenant)
  if (later !== undefined) {
    throw new Error(
      `${later.file} has a checkpoint at seq ${later.seq} that this store has not: it was cut, lost or restored from an older backup, and signs a second history from its next checkpoint on. Put the newer store back, or keep that file and tell everyone who holds a checkpoint`,
    )
  }
  return 'holds from its last checkpoint to its head'
}

const BASE_URLS = ['ANTHROPIC_BASE_URL', 'OPENAI_BASE_URL'] as const

async function baseUrls(vars: Vars, own: string, probe: boolean): Promise<Check[]> {
  const checks: Check[] = []
  for (const name of BASE_URLS) {
    const value = vars[name]
    if (value === undefined || value === '') {
      checks.push({ name, ok: true, detail: `not set in this shell: its programs do not come through ${own}` })
    } else if (!URL.canParse(value)) {
      checks.push({ name, ok: false, detail: `"${value.slice(0, 100)}" is no address: set it to ${own}, or unset it` })
    } else if (probe) {
      checks.push(await outcome(name, () => namesRouter(new URL(value).origin)))
    } else {
      const { origin } = new URL(value)
      checks.push({ name, ok: true, detail: origin === own ? 'this router' : `${origin}, which is not ${own}` })
    }
  }
  return checks
}

async function namesRouter(origin: string): Promise<string> {
  const answer = await fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(PROBE_MS) })
  const body: unknown = await answer.json().catch(() => undefined)
  const isRouter = typeof body === 'object' && body !== null && 'service' in body && body.service === 'router'
  if (!isRouter) throw new Error(`${origin} is not a router`)
  return `${origin} is a router`
}

async function statusOf(address: string, by = fetch): Promise<number> {
  const { status } = await by(address, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) })
  return status
}

async function outcome(name: string, check: () => string | Promise<string>): Promise<Check> {
  try {
    return { name, ok: true, detail: await check() }
  } catch (error) {
    return { name, ok: false, detail: toMessage(error) }
  }
}

function toMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const inner = error.message === 'fetch failed' && error.cause instanceof Error ? error.cause.message : ''
  return inner === '' ? error.message : `not reachable: ${inner}`
}
