import { loadBuiltinPrices } from '../../shared/prices/builtin.ts'
import { type ActiveConfig, activate } from '../active-config.ts'
import { configFileReader, readConfigFile } from '../host/config-file.ts'

type Vars = Readonly<Record<string, string | undefined>>

/** The routing config that a router with these variables would use. Throws ConfigError with every problem. */
export async function routingConfig(vars: Vars): Promise<ActiveConfig> {
  const file = vars.ROUTER_CONFIG || undefined
  return activate(file === undefined ? '' : await readConfigFile(file), {
    file: file ?? 'config',
    readFile: configFileReader(file),
    env: vars,
    builtinPrices: await loadBuiltinPrices(),
    hostHasProcesses: true,
    // Gates are only described here and never run.
    gateHost: { runProcess: neverRun, regexRunner: { run: neverRun }, fetch, env: name => vars[name] },
  })
}

async function neverRun(): Promise<never> {
  throw new Error('a command that reads the config runs no gate')
}
