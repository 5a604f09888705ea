import { Command, type CommandClass, Option, UsageError } from 'clipanion'
import { REFUSED } from '../../shared/cli/exit-code.ts'
import { jsonText } from '../../shared/cli/json-text.ts'
import { styleOf } from '../../shared/cli/style.ts'
import { toTable } from '../../shared/cli/text-table.ts'
import type { RuntimeClient } from '../../shared/client/client.ts'
import { nearest } from '../../shared/wire/nearest.ts'
import { ServiceCommand, WHERE } from './service-command.ts'
import { printable } from './terminal.ts'

type Names = string

/** What a command takes: words that have to be there, options with a value, and switches; each with its explanation. */
interface VerbWords<W extends Names, O extends Names, F extends Names> {
  about: string
  details?: string
  examples?: [what: string, line: string][]
  words?: readonly W[]
  options?: Readonly<Record<O, string>>
  switches?: Readonly<Record<F, string>>
}

type Given<W extends Names, O extends Names, F extends Names> = Readonly<Record<W, string>> &
  Readonly<Partial<Record<O, string>>> &
  Readonly<Record<F, boolean>>

interface Verb<W extends Names, O extends Names, F extends Names, T> extends VerbWords<W, O, F> {
  act(client: RuntimeClient, given: Given<W, O, F>, context: Command['context']): Promise<T>
  /** The answer as a person reads it. */
  show(answer: T, given: Given<W, O, F>): string | Promise<string>
  /** Whether the answer says that it did not come about; without it, an answer is a success. */
  failed?(answer: T): boolean
}

/** A command that makes one call of the service and shows what came of it; `--json` gives the answer itself. */
export function verb<T, W extends Names = never, O extends Names = never, F extends Names = never>(
  path: string,
  spec: Verb<W, O, F, T>,
): CommandClass {
  return class extends command(path, spec, { json: 'Print the answer as JSON.' }) {
    protected async act(client: RuntimeClient): Promise<number> {
      const given = this.given(spec)
      const answer = await spec.act(client, given, this.context)
      this.say(this.is('json') ? jsonText(answer ?? null) : printable(await spec.show(answer, given)).trimEnd())
      return spec.failed?.(answer) ? REFUSED : 0
    }
  }
}

type Cell = string | number | boolean | null | undefined

interface ListVerb<W extends Names, O extends Names, F extends Names, T> extends VerbWords<W, O, F> {
  rows(client: RuntimeClient, given: Given<W, O, F>): AsyncIterable<T> | Promise<readonly T[]>
  columns: readonly (readonly [head: string, cell: (row: T) => Cell])[]
  /** What to do where there is nothing yet. */
  empty: string
}

const LIMIT = 50

/** A command that lists what the service has, as a table with a head; `--quiet` gives the first column alone. */
export function listVerb<T, W extends Names = never, O extends Names = never, F extends Names = never>(
  path: string,
  spec: ListVerb<W, O, F, T>,
): CommandClass {
  const more = { json: 'Print the rows as a JSON array.', quiet: 'Print the first column alone.' }
  const options = { ...spec.options, limit: `How many at most; default ${LIMIT}.` } as Record<O | 'limit', string>
  return class extends command(path, { ...spec, options }, more) {
    protected async act(client: RuntimeClient): Promise<number> {
      const { stdout, stderr, env } = this.context
      const given = this.given({ ...spec, options })
      const limit = wholeNumber('--limit', given.limit, { least: 1 }) ?? LIMIT
      const rows = await taken(await spec.rows(client, given), limit + 1)
      const isCut = rows.length > limit
      if (isCut) rows.pop()
      if (this.is('json')) this.say(jsonText(rows))
      else if (rows.length === 0) stderr.write(`${spec.empty}\n`)
      else {
        const cells = rows.map(row => spec.columns.map(([, cell]) => textOf(cell(row))))
        if (this.is('quiet')) for (const [first = ''] of cells) this.say(first)
        else
          stdout.write(
            toTable(
              spec.columns.map(([head]) => head),
              cells,
              styleOf(stdout, env).dim,
            ),
          )
      }
      if (isCut) stderr.write(`There are more: --limit ${limit * 2} shows them.\n`)
      return 0
    }
  }
}

/** What both kinds have in common: the options of the framework, made from the words. */
function command<W extends Names, O extends Names, F extends Names>(
  path: string,
  spec: VerbWords<W, O, F>,
  more: Readonly<Record<string, string>>,
) {
  const { about, details, examples = [], words = [], options = {}, switches = {} } = spec
  abstract class VerbCommand extends ServiceCommand {
    static override paths = [path.split(' ')]
    static override usage = Command.Usage({
      description: about,
      details: [details, WHERE].filter(one => one !== undefined).join('\n\n'),
      examples: examples.map(([what, line]) => [what, `$0 ${line}`]),
    })

    constructor() {
      super()
      // The framework finds what a command takes in the members of an object of its class.
      const made: [string, unknown][] = [
        ...words.map(name => [name, Option.String({ name, required: true })] as [string, unknown]),
        ...Object.entries<string>(options).map(
          ([name, description]) => [name, Option.String(`--${dashed(name)}`, { description })] as [string, unknown],
        ),
        ...Object.entries<string>({ ...switches, ...more }).map(
          ([name, description]) =>
            [name, Option.Boolean(`--${dashed(name)}`, false, { description })] as [string, unknown],
        ),
      ]
      for (const [name, option] of made) Reflect.set(this, memberOf(name), option)
    }

    protected is(name: string): boolean {
      return Reflect.get(this, memberOf(name)) === true
    }

    protected given<A extends Names, B extends Names, C extends Names>(of: VerbWords<A, B, C>): Given<A, B, C> {
      const names = [...(of.words ?? []), ...Object.keys(of.options ?? {}), ...Object.keys(of.switches ?? {})]
      return Object.fromEntries(names.map(name => [name, Reflect.get(this, memberOf(name))])) as Given<A, B, C>
    }
  }
  return VerbCommand
}

const memberOf = (name: string) => `given.${name}`
const dashed = (name: string) => name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)

async function taken<T>(rows: AsyncIterable<T> | readonly T[], most: number): Promise<T[]> {
  const found: T[] = []
  for await (const row of rows) {
    found.push(row)
    if (found.length >= most) break
  }
  return found
}

function textOf(cell: Cell): string {
  return cell === null || cell === undefined ? '-' : printable(String(cell)).replaceAll(/\s+/g, ' ')
}

/** A whole number that was given as an option. */
export function wholeNumber(name: string, text: string | undefined, { least = 0 } = {}): number | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  if (text.trim() !== '' && Number.isSafeInteger(number) && number >= least) return number
  throw new UsageError(`${name}: expected a whole number from ${least} up, got "${text}"`)
}

/** One of a few words that was given as an option. */
export function oneOf<T extends string>(name: string, text: string | undefined, known: readonly T[]): T | undefined {
  if (text === undefined) return undefined
  const found = known.find(one => one === text)
  if (found !== undefined) return found
  const meant = nearest(text, known)
  throw new UsageError(
    `${name}: ${meant === undefined ? `expected one of ${known.join(', ')}.` : `did you mean ${meant}?`} Got "${text}".`,
  )
}

/** A time to the second, in UTC. */
export function timeText(at: string | null | undefined): string | undefined {
  return at?.replace('T', ' ').replace(/\.\d+Z$/, 'Z')
}

/** Members with their values, one in a line; what is absent is left out. */
export function membersText(members: Readonly<Record<string, Cell>>): string {
  const given = Object.entries(members).filter(([, value]) => value !== undefined && value !== null)
  const width = Math.max(...given.map(([name]) => name.length))
  return given.map(([name, value]) => `${name.padEnd(width)}  ${String(value)}`).join('\n')
}
