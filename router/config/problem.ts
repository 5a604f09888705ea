import type { Locator, Path } from './locate.ts'

export interface ConfigProblem {
  /** The file's name, or `config` for an object. */
  file: string
  /** null when the config is an object and so has no lines. */
  line: number | null
  column: number | null
  /** Dotted path of what is wrong: `route.1.gatez`. */
  path: string
  message: string
}

/** One line for a terminal: `router.toml:3:1: unknown key …`. */
export function formatProblem({ file, line, column, path, message }: ConfigProblem): string {
  const place = line === null ? `${file}${path === '' ? '' : ` ${path}`}` : `${file}:${line}:${column}`
  return `${place}: ${message}`
}

export type Problems = ReturnType<typeof problemList>

/** Collects what is wrong with a config; without a locator the paths stand alone. */
export function problemList(file: string, locate?: Locator) {
  const found: ConfigProblem[] = []

  function add(path: Path, message: string, at: 'key' | 'value'): void {
    const place = locate?.[at](path)
    const problem = {
      file,
      line: place?.line ?? null,
      column: place?.column ?? null,
      path: path.join('.'),
      message,
    }
    if (!found.some(other => formatProblem(other) === formatProblem(problem))) found.push(problem)
  }

  return {
    atKey: (path: Path, message: string) => add(path, message, 'key'),
    /** For what is wrong outside the file, such as a variable. */
    outside: (name: string, message: string) =>
      void found.push({ file: name, line: null, column: null, path: '', message }),
    atValue: (path: Path, message: string) => add(path, message, 'value'),
    /** ` (line 3)` for a sentence that refers to another place; empty when there are no lines. */
    lineOf: (path: Path): string => (locate === undefined ? '' : ` (line ${locate.value(path).line})`),
    any: () => found.length > 0,
    /** In the order of the text. */
    all: (): ConfigProblem[] =>
      found.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0)),
  }
}

const LISTS = new Set(['route', 'gate', 'provider', 'model', 'price'])

/** Names a table the way it is written in the file: `in [[route]] #2`, `in match of [[route]] #2`, `at the top level`. */
export function inTable(path: Path): string {
  return path.length === 0 ? 'at the top level' : `in ${tableName(path)}`
}

export function tableName(path: Path): string {
  const [first, second] = path
  if (typeof first === 'string' && LISTS.has(first) && typeof second === 'number') {
    const inner = numbered(path.slice(2))
    return `${inner === '' ? '' : `${inner} of `}[[${first}]] #${second + 1}`
  }
  if (first === 'tenant') return `[${path.join('.')}]`
  const inner = numbered(path.slice(1))
  return `${inner === '' ? '' : `${inner} of `}[${first}]`
}

/** `tiers #2`, `match.header`: the steps inside a table, positions counted from 1. */
export function numbered(path: Path): string {
  let out = ''
  for (const step of path) out += typeof step === 'number' ? ` #${step + 1}` : (out === '' ? '' : '.') + step
  return out
}
