import type { Definition } from 'clipanion'
import { everyExit, type ProgramExits } from './exit-code.ts'
import type { Style } from './style.ts'

/** Commands that belong together, by the words behind the program's name; the most used first. */
export type CommandGroup = readonly [title: string, commands: readonly string[]]

export interface HelpWords {
  name: string
  about: string
  groups: readonly CommandGroup[]
  exits: ProgramExits
}

const WIDTH = 100

/** What the program is for, and its commands by group. */
export function programHelp(words: HelpWords, definitions: readonly Definition[], { bold, dim }: Style): string {
  const about = new Map(definitions.map(({ path, description = '' }) => [path, description.trim()]))
  const width = Math.max(...words.groups.flatMap(([, commands]) => commands.map(one => one.length)))
  const groups = words.groups.map(([title, commands]) => {
    const lines = commands.map(one => besides(one.padEnd(width), about.get(`${words.name} ${one}`) ?? '', width))
    return `${bold(title)}\n${lines.join('')}`
  })
  const more = `${words.name} help <command> explains one, with its options and examples.`
  return [`${words.about}\n`, ...groups, `${dim(more)}\n`].join('\n')
}

/** The commands that begin with some words, such as `runtime help keys`; undefined where there are none. */
export function groupHelp(
  name: string,
  words: readonly string[],
  definitions: readonly Definition[],
): string | undefined {
  const beginning = [name, ...words].join(' ')
  const found = definitions.filter(({ path }) => path.startsWith(`${beginning} `))
  if (found.length === 0) return undefined
  const width = Math.max(...found.map(({ path }) => path.length))
  return found.map(({ path, description = '' }) => besides(path.padEnd(width), description.trim(), width)).join('')
}

/** How one command is used. */
export function commandHelp(definition: Definition, exits: ProgramExits, name: string, { bold, dim }: Style): string {
  const { path, description = '', details, examples = [], options } = definition
  const given = options.map(one => ({ name: withValueNames(one.definition), about: one.description?.trim() ?? '' }))
  const width = Math.min(36, Math.max(0, ...given.map(one => one.name.length)))
  const codes = Object.entries({ ...everyExit, ...exits[path.replace(`${name} `, '')] })
  const part = (title: string, lines: readonly string[]) =>
    lines.length > 0 ? [`${bold(title)}\n${lines.join('')}`] : []
  return [
    `${description.trim()}\n`,
    `${bold('Usage')}\n  ${usageOf(definition)}\n`,
    ...(details?.trim() ? [`${details.trim().replaceAll('$0', name).replace(/ +$/gm, '')}\n`] : []),
    ...part(
      'Options',
      given.map(one => besides(one.name.padEnd(width), one.about, width)),
    ),
    ...part(
      'Examples',
      examples.map(([what, line]) => `  ${dim(`# ${what.trim()}`)}\n  ${line.trim()}\n`),
    ),
    ...part(
      'Exit codes',
      codes.map(([code, means]) => besides(code.padEnd(3), means, 3)),
    ),
  ].join('\n')
}

/** The line that shows a command with what it takes. */
export function usageOf({ usage, options }: Definition): string {
  const required = options.filter(one => one.required).map(one => withValueNames(one.definition))
  const optional = options.some(one => !one.required) ? ['[options]'] : []
  return [usage.trim(), ...required, ...optional].join(' ')
}

/** The framework writes `#0` where an option takes a value: `--url #0` is `--url <url>`. */
function withValueNames(definition: string): string {
  return definition.trim().replace(/--([a-z][a-z-]*) #\d/g, '--$1 <$1>')
}

/** A name with its explanation beside it, in lines of a readable width. */
function besides(name: string, about: string, width: number): string {
  const indent = ' '.repeat(width + 4)
  const lines: string[] = []
  let line = ''
  for (const word of about.split(/\s+/)) {
    if (line !== '' && indent.length + line.length + word.length >= WIDTH) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  lines.push(line)
  return `  ${name}  ${lines.join(`\n${indent}`)}`.trimEnd() + '\n'
}
