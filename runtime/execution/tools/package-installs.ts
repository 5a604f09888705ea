import { StepFailure } from '../failure.ts'
import type { Command } from '../sandbox/sandboxes.ts'

export const managers = ['pip', 'npm', 'apt'] as const
type Installs = 'pip' | 'npm'

const VERSION = '[A-Za-z0-9.*+!_-]{1,64}'
/** A name and perhaps a version: nothing that a package manager would take for an option, an address or a file. */
const NAMES: Record<Installs, string> = {
  pip: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}(\\[[A-Za-z0-9,._-]{1,100}\\])?((==|>=|<=|~=|!=|<|>)${VERSION})?`,
  npm: `(@[a-z0-9-][a-z0-9._-]{0,127}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}(@[\\^~]?${VERSION})?`,
}

/** Of a package of any of them, for a schema that knows only one list. */
export const PACKAGE = `^(${NAMES.pip}|${NAMES.npm})$`

/** Programs find what is there by PYTHONPATH. Only what is built already: a source would run code of its own to install itself. */
const PIP = [
  ...['pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check', '--no-cache-dir'],
  ...['--only-binary=:all:', '--upgrade', '--retries=0', '--timeout=20', '--target=/work/.python'],
] as const

/** Where Node looks first, from a program in /work. No script of a package is run, for the reason why pip builds none. */
const NPM = [
  ...['npm', 'install', '--ignore-scripts', '--prefix=/work', '--cache=/work/.npm', '--logs-max=0', '--no-audit'],
  ...['--no-fund', '--no-update-notifier', '--loglevel=error', '--fetch-retries=0', '--fetch-timeout=20000'],
] as const

/** What npm keeps of each download would be kept once more with the workspace. */
const WITHOUT_CACHE = '"$@"; code=$?; rm -rf /work/.npm; exit $code'

const EXAMPLE: Record<Installs, string> = { pip: 'name or name==1.0', npm: 'name, @scope/name or name@1.0' }

/** The command that installs packages in the workspace; throws where there is none. */
export function installCommand(manager: string, packages: readonly string[], has: ReadonlySet<string>): Command {
  if (manager !== 'pip' && manager !== 'npm') {
    const instead = 'install with pip or npm, or build an image that has the program'
    throw new StepFailure('unsupported', `${manager} is not offered: ${instead}`)
  }
  if (!has.has(manager)) {
    const how = '"node-agent image --interpreters" builds one that has'
    throw new StepFailure('unsupported', `the image has no ${manager}: ${how}`)
  }
  const name = new RegExp(`^${NAMES[manager]}$`)
  const other = packages.find(one => !name.test(one))
  if (other !== undefined) {
    throw new StepFailure('bad_arguments', `${other} is no package of ${manager}: give ${EXAMPLE[manager]}`)
  }
  if (manager === 'pip') return { argv: [...PIP, ...packages] }
  return { argv: ['/bin/sh', '-c', WITHOUT_CACHE, 'sh', ...NPM, ...packages] }
}
