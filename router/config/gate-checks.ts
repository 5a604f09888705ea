import { urlProblem } from './base-url.ts'
import type { GateTable } from './gate-table.ts'
import { isHeaderName, isOwnedHeader } from './header-names.ts'
import type { Path } from './locate.ts'
import { suggestion } from './nearest.ts'
import type { Problems } from './problem.ts'
import { nameOf } from './read-table.ts'
import type { Models } from './resolve-models.ts'

interface GateHost {
  hasProcesses: boolean
  /** Reads a schema file, named as in the config. */
  readFile: ((path: string) => string) | undefined
  /** Names of the functions handed to the library. */
  functions: ReadonlySet<string>
}

export interface GateDeps {
  problems: Problems
  models: Models
  host: GateHost
}

/** A gate while it is being checked. */
export interface InGate extends GateDeps {
  at: (key: string) => Path
  bad: ReadonlySet<string>
}

/** Reports a value of the gate. */
export function say({ problems, at }: InGate, key: string, message: string): void {
  problems.atValue(at(key), `${nameOf(at(key))}: ${message}`)
}

export function checkPatterns(table: GateTable<'regex'>, gate: InGate): void {
  if (!/^[imsuv]*$/.test(table.flags) || !compiles('', table.flags)) {
    say(gate, 'flags', 'expected some of i, m, s and one of u, v, each once')
    return
  }
  if (table.must.length + table.must_not.length === 0 && !gate.bad.has('must') && !gate.bad.has('must_not'))
    say(gate, 'must', 'a regex gate takes at least one pattern in "must" or "must_not"')
  for (const key of ['must', 'must_not'] as const) {
    table[key].forEach((pattern, i) => {
      const error = compileError(pattern, table.flags)
      const at = [...gate.at(key), i]
      if (error !== undefined) gate.problems.atValue(at, `${nameOf(at)}: ${error}`)
    })
  }
}

const compiles = (pattern: string, flags: string) => compileError(pattern, flags) === undefined

function compileError(pattern: string, flags: string): string | undefined {
  try {
    new RegExp(pattern, flags)
    return undefined
  } catch (error) {
    // The engine's message repeats the pattern; what is wrong with it stands after the last colon.
    const text = reason(error)
    return `not a regular expression: ${text.slice(text.lastIndexOf(': ') + 2).toLowerCase()}`
  }
}

export function checkBounds(table: GateTable<'length'>, gate: InGate): void {
  const { min_chars, max_chars, min_tokens, max_tokens } = table
  const none = [min_chars, max_chars, min_tokens, max_tokens].every(bound => bound === undefined)
  if (none && !['min_chars', 'max_chars', 'min_tokens', 'max_tokens'].some(key => gate.bad.has(key)))
    say(gate, 'min_chars', 'a length gate takes at least one of min_chars, max_chars, min_tokens, max_tokens')
  if (min_chars !== undefined && max_chars !== undefined && min_chars > max_chars)
    say(gate, 'max_chars', `expected at least min_chars, which is ${min_chars}`)
  if (min_tokens !== undefined && max_tokens !== undefined && min_tokens > max_tokens)
    say(gate, 'max_tokens', `expected at least min_tokens, which is ${min_tokens}`)
}

export function checkHttp(table: GateTable<'http'>, gate: InGate): void {
  const names = Object.keys(table.headers_env)
  // Without a secret to send, a gate in the next container may speak plain http.
  const wrong = urlProblem(table.url, { plainHttp: names.length === 0 })
  if (wrong !== undefined) say(gate, 'url', wrong)
  for (const name of names) {
    const where = [...gate.at('headers_env'), name]
    if (!isHeaderName(name)) gate.problems.atKey(where, `${nameOf(where)}: not a header name`)
    else if (isOwnedHeader(name)) gate.problems.atKey(where, `${nameOf(where)}: the router sets this header itself`)
  }
}

export function checkFunction(table: GateTable<'function'>, gate: InGate): void {
  const { functions } = gate.host
  if (functions.has(table.name)) return
  const meant = suggestion(table.name, functions)
  say(gate, 'name', `createRouter was given no gate function "${table.name}"${meant || ', add it to its gates option'}`)
}

/** What went wrong, as a host or a parser says it. */
export const reason = (error: unknown) => (error instanceof Error ? error.message : String(error))
