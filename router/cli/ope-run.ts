import { readFile } from 'node:fs/promises'
import { loadBuiltinPrices } from '../../shared/prices/builtin.ts'
import { evalsQuery } from '../../shared/wire/router/evals.ts'
import { ConfigError } from '../active-config.ts'
import { loadConfig } from '../config/load-config.ts'
import { formatProblem } from '../config/problem.ts'
import type { RoutingConfig } from '../config/routing-config.ts'
import { configFileReader } from '../host/config-file.ts'
import { openStoreToRead } from '../host/open-store.ts'
import type { Metric } from '../ope/estimate.ts'
import { type Rehearsal, rehearse } from '../ope/rehearse.ts'
import { readFlags } from './read-store.ts'

type Vars = Readonly<Record<string, string | undefined>>

export interface OpeAsk {
  vars: Vars
  address: string | undefined
  /** One of these two is the policy. */
  startRung: number | undefined
  configFile: string | undefined
  metrics: readonly Metric[]
  tenant: string | undefined
  window: { since: string | undefined; until: string | undefined }
}

export async function runOpe(ask: OpeAsk): Promise<Rehearsal[]> {
  const { vars, configFile, startRung = 0, metrics, tenant } = ask
  const { since, until } = readFlags(evalsQuery, ask.window)
  const span = { tenant, since: moment(since), until: moment(until) }
  const target = configFile === undefined ? { startRung } : { config: await configToRehearse(configFile, vars) }
  const db = await openStoreToRead(vars, ask.address, tenant)
  try {
    return await rehearse(db, { target, metrics, span })
  } finally {
    db.close()
  }
}

const moment = (text: string | undefined) => (text === undefined ? undefined : new Date(text))

/** A config that is only rehearsed may ask for what this version or this host does not do. */
async function configToRehearse(file: string, vars: Vars): Promise<RoutingConfig> {
  const text = await readFile(file, 'utf8').catch((cause: Error) => {
    throw new ConfigError(`--config names ${file}, which cannot be read: ${cause.message}`, { cause })
  })
  const loaded = loadConfig(text, {
    file,
    env: vars,
    builtinPrices: await loadBuiltinPrices(),
    hostHasProcesses: true,
    readFile: configFileReader(file),
  })
  if (!loaded.ok) throw new ConfigError(loaded.problems.map(formatProblem).join('\n'))
  return loaded.config
}
