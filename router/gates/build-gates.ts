import { consistencyGate } from './consistency.ts'
import { isPrefixDecidable } from './early-release.ts'
import { type FunctionGate, functionGate } from './function.ts'
import type { Gate, GateJudge, GateRun } from './gate.ts'
import type { GateConfig, HttpConfig, JsonValidConfig, NonEmptyConfig } from './gate-config.ts'
import { type GateFetch, httpGate } from './http.ts'
import { jsonValid } from './json-valid.ts'
import { judgeGate } from './judge.ts'
import { length } from './length.ts'
import { nonEmpty } from './non-empty.ts'
import type { ProcessRunner } from './process-runner.ts'
import { patternProblem, regexGate } from './regex.ts'
import type { RegexRunner } from './regex-runner.ts'
import { schemaGate } from './schema.ts'
import { createSlots } from './slots.ts'
import { subprocessGate } from './subprocess.ts'
import { toolArgsGate } from './tool-args.ts'

/** What this host lends to gates; a kind that needs what is missing is refused. */
export interface GateHost {
  readonly runProcess?: ProcessRunner
  readonly fetch?: GateFetch
  readonly functions?: Readonly<Record<string, FunctionGate>>
  readonly regexRunner?: RegexRunner
  /** Reads a variable, for `headers_env`. */
  readonly env?: (name: string) => string | undefined
}

type GateProblemCode =
  /** The host lacks what the gate needs. */
  'host' | 'bad_pattern' | 'bad_bounds' | 'bad_url' | 'missing_variable' | 'unknown_function' | 'duplicate_id'

interface GateProblem {
  readonly gateId: string
  readonly code: GateProblemCode
  /** A sentence that says what to do. */
  readonly message: string
}

export interface BuiltGates {
  readonly gates: ReadonlyMap<string, Gate>
  /** A gate with a problem is not among the gates; a config that names it must not be served. */
  readonly problems: readonly GateProblem[]
}

const BUILT_IN = { onAbstain: 'fail-open', timeoutMs: 1000, cost: 0, maxParallel: 8 } as const
const NON_EMPTY: NonEmptyConfig = {
  ...BUILT_IN,
  id: 'non-empty',
  kind: 'non-empty',
  acceptToolCalls: true,
  refusal: 'fail',
  minChars: 1,
}
const JSON_VALID: JsonValidConfig = {
  ...BUILT_IN,
  id: 'json-valid',
  kind: 'json-valid',
  fences: true,
  onToolCall: 'pass',
}

/** Makes the gates of a config; `non-empty` and `json-valid` are there without a block of their own. */
export function buildGates(configs: readonly GateConfig[], host: GateHost): BuiltGates {
  const gates = new Map<string, Gate>()
  const problems: GateProblem[] = []
  const ids = new Set<string>()
  const own = new Set(configs.map(({ id }) => id))
  for (const config of [...[NON_EMPTY, JSON_VALID].filter(({ id }) => !own.has(id)), ...configs]) {
    const built = ids.has(config.id)
      ? problem('duplicate_id', 'another gate has the same id: ids are unique')
      : builtOf(config, host)
    ids.add(config.id)
    if ('run' in built) gates.set(config.id, gateOf(config, built))
    else problems.push({ gateId: config.id, code: built.code, message: `gate "${config.id}": ${built.message}` })
  }
  return { gates, problems }
}

type Built = Pick<Gate, 'run' | 'inline'>

function gateOf(config: GateConfig, built: Built): Gate {
  const { id, kind, onAbstain, timeoutMs, cost, maxParallel } = config
  const onPrefix = isPrefixDecidable(config) ? config : undefined
  const callsModels = kind === 'judge' || kind === 'consistency'
  const slots = createSlots(maxParallel)
  return { id, kind, onAbstain, timeoutMs, costNano: cost, onPrefix, callsModels, slots, ...built }
}

type Refusal = Omit<GateProblem, 'gateId'>

const problem = (code: GateProblemCode, message: string): Refusal => ({ code, message })

const inline = (judge: GateJudge): Built => ({ inline: judge, run: async input => judge(input) })

const apart = (run: GateRun): Built => ({ inline: undefined, run })

function builtOf(config: GateConfig, host: GateHost): Built | Refusal {
  switch (config.kind) {
    case 'non-empty':
      return inline(input => nonEmpty(config, input))
    case 'json-valid':
      return inline(input => jsonValid(config, input))
    case 'length': {
      const { minChars, maxChars, minTokens, maxTokens } = config
      if ([minChars, maxChars, minTokens, maxTokens].every(bound => bound === null))
        return problem('bad_bounds', 'a length gate needs at least one bound, such as max_chars')
      return inline(input => length(config, input))
    }
    case 'schema': {
      const made = schemaGate(config, host.regexRunner)
      if ('judge' in made) return inline(made.judge)
      if ('run' in made) return apart(made.run)
      return problem(
        'host',
        `its schema uses ${made.costly.join(', ')}, which can take any time, and this host has no worker threads to stop it: leave these keywords out or run on Node`,
      )
    }
    case 'tool-args':
      return apart(toolArgsGate(config, host.regexRunner))
    case 'regex': {
      const wrong = patternProblem(config)
      if (wrong !== undefined) return problem('bad_pattern', wrong)
      if (host.regexRunner === undefined)
        return problem(
          'host',
          'a pattern can take any time, and this host has no worker threads to stop it: use an http gate or run on Node',
        )
      return apart(regexGate(config, host.regexRunner))
    }
    case 'subprocess':
      if (host.runProcess === undefined)
        return problem('host', 'this host cannot start processes: use an http gate or run on Node')
      return apart(subprocessGate(config, host.runProcess))
    case 'http':
      return http(config, host)
    case 'function': {
      const { functions = {} } = host
      if (!Object.hasOwn(functions, config.name))
        return problem('unknown_function', `no function "${config.name}" was handed over: pass it in \`gates\``)
      return apart(functionGate(config.id, functions[config.name]!))
    }
    case 'judge':
      return apart(judgeGate(config))
    case 'consistency':
      return apart(consistencyGate(config))
  }
}

function http(config: HttpConfig, { fetch, env = () => undefined }: GateHost): Built | Refusal {
  if (fetch === undefined) return problem('host', 'this host makes no outgoing calls: remove it')
  const url = URL.parse(config.url)
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '')
    return problem('bad_url', 'url must be an http or https address without a name or password in it')
  const headers: Record<string, string> = {}
  for (const [header, variable] of Object.entries(config.headersEnv)) {
    const value = env(variable)
    if (value === undefined || value === '')
      return problem('missing_variable', `the variable ${variable} is not set: it holds the header ${header}`)
    headers[header] = value
  }
  return apart(httpGate(config, headers, fetch))
}
