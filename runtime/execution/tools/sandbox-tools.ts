import { fromBase64, toBase64, utf8 } from '../../../shared/sign/bytes.ts'
import { builtInTools, type Effect, interruptedDefault, type Tool } from '../../../shared/wire/runtime/tool.ts'
import { StepFailure } from '../failure.ts'
import type { SandboxTool } from '../sandbox/placement.ts'
import { provenance, type SandboxOfRun } from '../sandbox/run-sandbox.ts'
import type { Command, RunSandbox } from '../sandbox/sandboxes.ts'
import type { StepResult } from '../step-spec.ts'
import type { ExposedTool } from './exposed-tool.ts'

const managers = ['pip', 'npm', 'apt'] as const
type Installs = 'pip' | 'npm'

const VERSION = '[A-Za-z0-9.*+!_-]{1,64}'
/** A name and perhaps a version: nothing that a package manager would take for an option, an address or a file. */
const NAMES: Record<Installs, string> = {
  pip: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}(\\[[A-Za-z0-9,._-]{1,100}\\])?((==|>=|<=|~=|!=|<|>)${VERSION})?`,
  npm: `(@[a-z0-9-][a-z0-9._-]{0,127}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}(@[\\^~]?${VERSION})?`,
}

/** Of a package of any of them, for a schema that knows only one list. */
const PACKAGE = `^(${NAMES.pip}|${NAMES.npm})$`

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
function installCommand(manager: string, packages: readonly string[], has: ReadonlySet<string>): Command {
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

/** Most of a file that a model is shown. */
const MAX_READ_BYTES = 256 * 1024

type Given = Record<string, unknown>
interface Spec {
  description: string
  properties: Record<string, unknown>
  required: readonly string[]
  /** Whether the workspace may be another afterwards. */
  changes: boolean
  call(sandbox: RunSandbox, given: Given, limits: { deadlineMs: number; signal: AbortSignal }): Promise<unknown>
}

const text = { type: 'string' }
const command = (argv: Command['argv'], given: Given): Command => ({
  argv,
  ...(typeof given.cwd === 'string' && { cwd: given.cwd }),
  ...(typeof given.stdin === 'string' && { stdin: given.stdin }),
})

type CommandTool = Exclude<SandboxTool, 'browse'>

const SPECS: Record<CommandTool, Spec> = {
  exec: {
    description: 'Runs a program in the sandbox of this run. Files in /work stay for later calls.',
    properties: { command: text, args: { type: 'array', items: text }, cwd: text, stdin: text },
    required: ['command'],
    changes: true,
    call: (sandbox, given, limits) => {
      const args = Array.isArray(given.args) ? given.args.map(String) : undefined
      const said = String(given.command)
      // Without arguments it is a line for the shell.
      return sandbox.run(command(args ? [said, ...args] : ['/bin/sh', '-c', said], given), limits)
    },
  },
  python: {
    description: 'Runs Python code in the sandbox of this run.',
    properties: { code: text },
    required: ['code'],
    changes: true,
    call: (sandbox, given, limits) => sandbox.run(command(['python3', '-c', String(given.code)], {}), limits),
  },
  node: {
    description: 'Runs JavaScript with Node in the sandbox of this run.',
    properties: { code: text },
    required: ['code'],
    changes: true,
    call: (sandbox, given, limits) => sandbox.run(command(['node', '-e', String(given.code)], {}), limits),
  },
  install_packages: {
    description:
      'Installs packages for Python (pip) or Node (npm) into the workspace, from a registry that the egress rules let the sandbox reach.',
    properties: {
      manager: { enum: [...managers] },
      packages: { type: 'array', items: { type: 'string', pattern: PACKAGE }, minItems: 1, maxItems: 50 },
    },
    required: ['manager', 'packages'],
    changes: true,
    call: (sandbox, given, limits) => {
      const packages = (given.packages as string[]).map(String)
      return sandbox.run(installCommand(String(given.manager), packages, sandbox.offered.programs), limits)
    },
  },
  read_file: {
    description: 'Reads a file of the workspace; what is no text comes as base64.',
    properties: { path: text },
    required: ['path'],
    changes: false,
    call: async (sandbox, given) => {
      const bytes = await sandbox.readFile(String(given.path), MAX_READ_BYTES)
      try {
        return { content: new TextDecoder('utf-8', { fatal: true }).decode(bytes), encoding: 'utf8' }
      } catch {
        return { content: toBase64(bytes), encoding: 'base64' }
      }
    },
  },
  list_files: {
    description: 'Lists a folder of the workspace.',
    properties: { path: text },
    required: [],
    changes: false,
    call: async (sandbox, given) => ({ files: await sandbox.listFiles(String(given.path ?? '.')) }),
  },
  write_file: {
    description: 'Writes a file of the workspace.',
    properties: { path: text, content: text, encoding: { enum: ['utf8', 'base64'] } },
    required: ['path', 'content'],
    changes: true,
    call: async (sandbox, given) => {
      const content = bytesOf(String(given.content), given.encoding)
      await sandbox.writeFile(String(given.path), content)
      return { written: content.length }
    },
  },
}

/** A tool that works in the sandbox of the run; `name` is one of the contract's. */
export function sandboxTool(tool: Tool & { name: CommandTool }, sandbox: SandboxOfRun): ExposedTool {
  const { name, needsApproval, onInterrupted } = tool
  const { description, properties, required, changes, call } = SPECS[name]
  const effect: Effect = tool.effect ?? builtInTools[name].effect
  const seconds = tool.timeoutSeconds ?? builtInTools[name].timeoutSeconds
  return {
    name,
    kind: 'exec',
    family: 'tools',
    needsApproval,
    description,
    parameters: { type: 'object', properties, required: [...required], additionalProperties: false },
    effect: () => effect,
    onInterrupted: () => onInterrupted ?? interruptedDefault(effect),
    async call(given, _place, { signal }): Promise<StepResult> {
      const room = await sandbox.get()
      const output = await call(room, given, { deadlineMs: seconds * 1000, signal })
      // Before the result is on record: what a later step finds must not be older than what was said of it.
      if (changes) await room.keep()
      return { output: sandbox.withoutSecretsIn(output), ...provenance(room) }
    },
  }
}

function bytesOf(content: string, encoding: unknown): Uint8Array {
  if (encoding !== 'base64') return utf8(content)
  try {
    return fromBase64(content)
  } catch (cause) {
    throw new StepFailure('bad_arguments', 'content is not base64', { cause })
  }
}
