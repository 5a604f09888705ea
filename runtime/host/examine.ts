import { mkdtemp, rmdir, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { nodeEnv, nodeRunEnv } from '../../node-agent/env.ts'
import { EnvError, namesProxy, readEnv, unreadNames } from '../../shared/env/read-env.ts'
import { isKnownFault } from '../../shared/host/known-fault.ts'
import { refuseLoneLog, refuseNetworkDisk } from '../../shared/host/open-libsql.ts'
import { isLoopback } from '../../shared/http/bind.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { silentLog } from '../../shared/log/log.ts'
import { rowsOf } from '../../shared/sql/db.ts'
import { nextStep } from '../../shared/sql/migrate.ts'
import { RESTORE } from '../../shared/sql/store-faults.ts'
import { tooOldMessage } from '../../shared/version.ts'
import { type RuntimeEnv, runtimeEnv } from '../env.ts'
import { replicaLag } from '../health/readiness.ts'
import { readProviders } from '../providers/environment.ts'
import { runtimeSteps } from '../schema/steps.ts'
import { checkMasterKey } from '../vault/canary.ts'
import { masterKey } from '../vault/master-key.ts'
import { vault } from '../vault/vault.ts'
import { type CheckOutcome, clockOf, durability, namesServer, writesOf } from './examine-server.ts'
import type { ShardEnv } from './examine-shards.ts'
import { masterKeyOf } from './master-key-file.ts'
import { lostLogOf, openReplicaStore, openStore, refuseShards } from './open.ts'

export interface Finding extends CheckOutcome {
  about: string
}

type Vars = Record<string, string | undefined>

const LITTLE_SPACE = 1024 ** 3

/** What a runtime started with this environment would find, and what stands in its way. Changes nothing. */
export async function examine(vars: Vars, ask: typeof fetch = fetch): Promise<Finding[]> {
  const found: Finding[] = []
  const look = async (about: string, work: () => Promise<CheckOutcome> | CheckOutcome) => {
    try {
      found.push({ about, ...(await work()) })
    } catch (error) {
      const { fileProblem } = await import('../../shared/cli/file-problem.ts')
      const says = isKnownFault(error) ? error.message : fileProblem(error)
      if (says === undefined) throw error
      found.push({ about, is: 'fail', says })
    }
  }
  await look('node', nodeVersion)
  let env: RuntimeEnv | undefined
  await look('settings', () => {
    env = readEnv(runtimeEnv, vars)
    refuseShards(env)
    readEnv(nodeEnv, vars)
    const [unread] = unknownNames(vars)
    return unread === undefined
      ? { is: 'ok', says: 'every PLATFORM_ variable can be read' }
      : { is: 'warn', says: unread }
  })
  if (!env) return found
  const known = env
  await look('data folder', () => dataFolder(known))
  const { ofShards, shards } = await import('./examine-shards.ts')
  let all: readonly ShardEnv[] = [{ name: undefined, env: known }]
  if (known.PLATFORM_DIRECTORY_URL !== undefined) {
    await look('directory', async () => {
      all = await ofShards(known)
      return shards(known, all)
    })
  }
  for (const { name, env: one } of all) {
    if (one.PLATFORM_DIRECTORY_URL !== undefined) continue
    const about = (what: string) => (name === undefined ? what : `${what} ${name}`)
    await look(about('store'), () => store(one))
    if (namesServer(one)) {
      await look(about('writes'), () => writesOf(one))
      await look(about('durability'), () => durability(one))
      await look(about('clock'), () => clockOf(one))
    }
  }
  if (known.PLATFORM_DATABASE_REPLICA_URL !== undefined) await look('replica', () => replica(known))
  for (const { name, env: one } of all) {
    await look(name === undefined ? 'master key' : `master key ${name}`, () => key(one))
  }
  if (namesProxy(vars)) {
    const { networkWords } = await import('../../shared/host/proxy-agent.ts')
    await look('proxy', () => ({ is: 'ok', says: networkWords(vars) }))
  }
  await look('models', () => models(vars, known))
  await look('address', () => address(known))
  await look('service', () => service(vars, known, ask))
  return found
}

function nodeVersion(): CheckOutcome {
  const says = tooOldMessage(process.versions.node)
  return says === undefined ? { is: 'ok', says: process.version } : { is: 'fail', says }
}

async function dataFolder({
  PLATFORM_DATA_DIR: folder,
  PLATFORM_DATABASE_URL: url,
}: RuntimeEnv): Promise<CheckOutcome> {
  const there = await stat(folder).catch(() => undefined)
  if (there && !there.isDirectory())
    return { is: 'fail', says: `${folder} is no folder: move it away, or set PLATFORM_DATA_DIR` }
  const fault = await writeFault(folder)
  if (fault !== undefined)
    return { is: 'fail', says: `${fault}: set PLATFORM_DATA_DIR to a folder that this account may write to` }
  if (!there) return { is: 'ok', says: `${folder} is made at the first start` }
  if ((there.mode & 0o077) !== 0 && url === undefined) {
    return { is: 'warn', says: `${folder} can be read by other accounts of this machine: run chmod 700 on it` }
  }
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (free < LITTLE_SPACE)
    return { is: 'warn', says: `${folder} has ${Math.round(free / 1024 ** 2)} MiB left on its disk` }
  return { is: 'ok', says: `${folder}, ${Math.round(free / 1024 ** 3)} GiB left` }
}

/** Why no folder can be made in this one, or in the nearest one above it that is there. */
async function writeFault(folder: string): Promise<string | undefined> {
  let above = resolve(folder)
  while (!(await stat(above).catch(() => undefined)) && dirname(above) !== above) above = dirname(above)
  try {
    await rmdir(await mkdtemp(join(above, '.waybill-')))
    return undefined
  } catch (error) {
    return `nothing can be made in ${above} (${(error as NodeJS.ErrnoException).code})`
  }
}

async function store(env: RuntimeEnv): Promise<CheckOutcome> {
  if (!(await hasStore(env))) {
    const path = resolve(env.PLATFORM_DATA_DIR, 'waybill.db')
    await refuseNetworkDisk(path)
    await refuseLoneLog(path)
    return emptyStore(env, 'none yet: it is made at the first start')
  }
  const lostLog = await lostLogOf(env)
  const db = await openStore(env, { create: false })
  try {
    const { rows } = await db.execute("select 1 from sqlite_master where name = 'schema_steps'")
    if (rows.length === 0) return await emptyStore(env, 'empty: its tables are made at the first start')
    const applied = await db.execute("select max(id) as step from schema_steps where part = 'runtime'")
    const [at, known] = [rowsOf<{ step: number | null }>(applied)[0]?.step ?? 0, runtimeSteps.at(-1)?.id ?? 0]
    if (at > known) {
      return {
        is: 'fail',
        says: `it was made by a newer version (step ${at}, this one knows ${known}): upgrade this program`,
      }
    }
    const { next } = await nextStep(db, 'runtime', runtimeSteps)
    const { damageOf, isOfIndex } = await import('../../shared/sql/damage.ts')
    const damage = db.kind === 'remote' ? undefined : await damageOf(db)
    if (damage !== undefined) {
      return { is: 'fail', says: `it is damaged (${damage}): ${isOfIndex(damage) ? MEND_INDEX : RESTORE}` }
    }
    const lost = await lostLog(db)
    if (lost !== undefined) return { is: 'warn', says: lost }
    return { is: 'ok', says: next ? `step ${at} of ${known}: the next start brings it up to date` : `step ${at}` }
  } finally {
    db.close()
  }
}

/** A start makes both: where there is only the key, the store or its log was lost. */
async function emptyStore({ PLATFORM_DATA_DIR: folder }: RuntimeEnv, says: string): Promise<CheckOutcome> {
  const key = join(folder, 'master.key')
  if (!(await stat(key).catch(() => undefined))) return { is: 'ok', says }
  return {
    is: 'warn',
    says: `${says}. An earlier start has made ${key}: if there were runs, put the store and its -wal back before the next start`,
  }
}

const MEND_INDEX = 'make a `runtime backup` of it and restore that, which writes its indexes again'

/** Further behind than this is no delay of a network any more. */
const LATE_MS = 10_000

async function replica(env: RuntimeEnv): Promise<CheckOutcome> {
  const [primary, copy] = [await openStore(env, { create: false }), await openReplicaStore(env)]
  try {
    if (!copy) return { is: 'ok', says: 'none' }
    const { runs, ms } = await replicaLag(primary, copy)
    if (runs === 0) return { is: 'ok', says: 'it has the newest run' }
    const says = `${runs} runs behind, the newest there ${Number.isFinite(ms) ? `${ms} ms older` : 'is none'}`
    return {
      is: ms > LATE_MS ? 'warn' : 'ok',
      says: ms > LATE_MS ? `${says}: see whether it reaches its primary` : says,
    }
  } finally {
    primary.close()
    copy?.close()
  }
}

/** Looking for a key must not make one: that is the first start's business. */
async function key(env: RuntimeEnv): Promise<CheckOutcome> {
  const place = join(env.PLATFORM_DATA_DIR, 'master.key')
  const given = env.PLATFORM_MASTER_KEY ?? env.PLATFORM_MASTER_KEY_FILE
  if (given === undefined && !(await stat(place).catch(() => undefined))) {
    if (!(await hasStore(env))) return { is: 'ok', says: 'made at the first start' }
    return { is: 'fail', says: `${place} is gone, and the store may be sealed under it: bring it back` }
  }
  const file = env.PLATFORM_MASTER_KEY === undefined ? (env.PLATFORM_MASTER_KEY_FILE ?? place) : undefined
  const bytes = await masterKeyOf(env, silentLog())
  const opens = await hasStore(env)
  if (opens) await checkKey(env, bytes)
  if (file !== undefined && ((await stat(file)).mode & 0o077) !== 0) {
    return { is: 'warn', says: `${file} can be read by other accounts of this machine: run chmod 600 on it` }
  }
  return { is: 'ok', says: opens ? 'opens what the store has sealed' : 'readable' }
}

async function checkKey(env: RuntimeEnv, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const db = await openStore(env, { create: false })
  try {
    const { rows } = await db.execute("select 1 from sqlite_master where name = 'runtime_meta'")
    if (rows.length > 0) await checkMasterKey(db, vault(await masterKey(bytes)))
  } finally {
    db.close()
  }
}

async function hasStore({ PLATFORM_DATABASE_URL: url, PLATFORM_DATA_DIR: folder }: RuntimeEnv): Promise<boolean> {
  return url !== undefined || (await stat(join(folder, 'waybill.db')).catch(() => undefined)) !== undefined
}

function models(vars: Vars, { PLATFORM_DEMO: demo }: RuntimeEnv): CheckOutcome {
  const names = readProviders(vars).map(({ provider }) => provider)
  if (names.length > 0) return { is: 'ok', says: `of the environment: ${names.join(', ')}` }
  if (demo === 'off')
    return { is: 'warn', says: 'none in the environment, and PLATFORM_DEMO is off: configure one over HTTP' }
  return { is: 'ok', says: 'none in the environment: answers are simulated until one is configured' }
}

function address({
  PLATFORM_BIND: bind,
  PLATFORM_PUBLIC_URL: url,
  PLATFORM_METRICS_TOKEN: token,
}: RuntimeEnv): CheckOutcome {
  const at = `${bind.host}:${bind.port}`
  if (isLoopback(bind.host)) return { is: 'ok', says: `${at}, this machine only` }
  if (url === undefined)
    return { is: 'warn', says: `${at} is reached from outside: set PLATFORM_PUBLIC_URL, with https` }
  if (token === undefined) return { is: 'warn', says: `${at}: /metrics is closed until PLATFORM_METRICS_TOKEN is set` }
  return { is: 'ok', says: `${at}, known as ${url}` }
}

async function service(vars: Vars, { PLATFORM_BIND: bind }: RuntimeEnv, ask: typeof fetch): Promise<CheckOutcome> {
  const host = bind.host === 'localhost' || bind.host === '0.0.0.0' ? '127.0.0.1' : bind.host
  const url = vars.PLATFORM_URL ?? `http://${host.includes(':') ? `[${host}]` : host}:${bind.port}`
  let answer: Response
  try {
    answer = await ask(new URL('/readyz', url), { signal: AbortSignal.timeout(3000) })
  } catch {
    return { is: 'ok', says: `nothing answers at ${url}: it is not running` }
  }
  const text = await answer.text()
  if (answer.status === 200) return { is: 'ok', says: `ready at ${url}` }
  let checks: Record<string, string> = {}
  try {
    checks = (readJson(text) as { checks?: Record<string, string> }).checks ?? {}
  } catch {
    throw new EnvError(`something else than a runtime answers at ${url}: set PLATFORM_BIND to another port`)
  }
  const problems = Object.entries(checks).filter(([, says]) => says !== 'ok')
  const says = problems.map(([name, problem]) => `${name}: ${problem}`).join('; ') || `it answers ${answer.status}`
  return { is: 'fail', says: `not ready at ${url}: ${says}` }
}

/** Those of clients, and of whole families: a provider's key, a vendor's OAuth client. */
const OF_CLIENTS = ['PLATFORM_URL', 'PLATFORM_API_KEY']
const FAMILIES = /^PLATFORM_(?:PROVIDER|OAUTH)_[A-Z0-9_]+$/

/** What the environment sets for the runtime and nothing reads. */
export function unknownNames(vars: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set([
    ...[runtimeEnv, nodeEnv, nodeRunEnv].flatMap(schema => Object.keys(schema.shape)),
    ...OF_CLIENTS,
  ])
  const ofNoFamily = Object.fromEntries(Object.entries(vars).filter(([name]) => !FAMILIES.test(name)))
  return unreadNames(ofNoFamily, { prefix: 'PLATFORM_', known })
}
