import { type BaseContext, Builtins, Cli, type Command, type CommandClass, type Definition } from 'clipanion'
import { VERSION } from '../version.ts'
import { nearest } from '../wire/nearest.ts'
import { commandTree, type KnownOption } from './command-tree.ts'
import { exitCodeOf, REFUSED, UNREACHABLE, USAGE } from './exit-code.ts'
import { commandHelp, groupHelp, type HelpWords, programHelp, usageOf } from './help.ts'
import { styleOf } from './style.ts'

export interface Program extends HelpWords {
  /** The commands by their first word. Only those that are asked for are loaded; help loads all. */
  commands: Readonly<Record<string, () => Promise<readonly CommandClass[]>>>
  /** The command that runs where none is named; without it the program explains itself. */
  standard?: string
}

type CommandLine = Pick<BaseContext, 'env' | 'stdin' | 'stdout' | 'stderr'>

/** Runs one command line of a program; what it returns is the exit code. */
export async function runProgram(program: Program, argv: readonly string[], line: CommandLine = process) {
  const { name } = program
  const context = { ...Cli.defaultContext, env: line.env, stdin: line.stdin, stdout: line.stdout, stderr: line.stderr }
  const cli = new Cli({ binaryName: name, binaryVersion: VERSION, enableColors: false })
  cli.register(Builtins.VersionCommand)
  const loaded = await Promise.all(wanted(program, argv[0] ?? program.standard).map(load => load()))
  for (const command of new Set(loaded.flat())) cli.register(command)
  const style = styleOf(context.stdout, context.env)
  const asked = argv.length === 0 && program.standard === undefined ? [] : helpAsked(argv)
  if (asked?.length === 0) {
    context.stdout.write(programHelp(program, cli.definitions(), style))
    return 0
  }
  if (asked) {
    const one = commandOf(name, asked, cli.definitions())
    if (one && !isForProxy(one, asked)) {
      context.stdout.write(commandHelp(one, program.exits, name, style))
      return 0
    }
    const group = groupHelp(name, asked, cli.definitions())
    if (group !== undefined) {
      context.stdout.write(group)
      return 0
    }
  }
  let command: Command
  try {
    command = cli.process([...(argv[0] === 'help' ? argv.slice(1) : argv)], context)
  } catch (error) {
    const words = argv[0] === 'help' ? argv.slice(1) : argv
    context.stderr.write(usageProblem(name, words, cli.definitions()) ?? `${firstLine(error)}\n`)
    return USAGE
  }
  return cli.run(answering(command, context.stderr), context)
}

function wanted({ commands }: Program, first: string | undefined) {
  if (first === '--version' || first === '-v') return []
  const own = first !== undefined && Object.hasOwn(commands, first) ? commands[first] : undefined
  // What can be completed is all that there is.
  return own === undefined || first === 'completion' ? Object.values(commands) : [own]
}

/** The words before any option of the command that is to be explained, none of them for the program; undefined where none is asked for. */
function helpAsked(argv: readonly string[]): readonly string[] | undefined {
  const last = argv.at(-1)
  const words = argv[0] === 'help' ? argv.slice(1) : last === '--help' || last === '-h' ? argv.slice(0, -1) : undefined
  const end = words?.findIndex(word => word.startsWith('-')) ?? -1
  if (argv.includes('--')) return undefined
  return end < 0 ? words : words?.slice(0, end)
}

/** A command that starts another program gives it all that stands behind its name. */
const isForProxy = ({ path, usage, options }: Definition, words: readonly string[]) =>
  usage.endsWith(' ...') && options.length === 0 && words.length >= path.split(' ').length

/** What a command refuses comes out of `execute`, so that the reason decides the exit code; the framework knows only 1. */
function answering(command: Command, stderr: { write(text: string): unknown }): Command {
  const execute = command.execute.bind(command)
  command.execute = async () => {
    try {
      return await execute()
    } catch (error) {
      const code = exitCodeOf(error)
      // Loaded only where it is needed: the fault may be that no file can be opened any more.
      const fileProblem = async () => (await import('./file-problem.ts')).fileProblem(error)
      const problem = code === undefined ? await fileProblem() : error instanceof Error && error.message
      if (!problem) throw error
      stderr.write(problem + '\n')
      return code ?? (isUnreadable(error) ? UNREACHABLE : REFUSED)
    }
  }
  return command
}

/** Of a store; what a full disk refuses did not come about. */
const isUnreadable = (error: unknown) =>
  error instanceof Error && 'code' in error && /^SQLITE_(?:CORRUPT|IOERR)$/.test(String(error.code))

const firstLine = (error: unknown) => (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]

/** What is wrong with a command line that does not read, and what to type instead; undefined where nothing of it is known. */
export function usageProblem(
  program: string,
  argv: readonly string[],
  definitions: readonly Definition[],
): string | undefined {
  const command = commandOf(program, argv, definitions)
  if (command === undefined) return unknownCommand(program, argv, definitions)
  const place = command.path.replace(`${program} `, '')
  const options = commandTree(program, definitions).find(one => one.at === place)?.options ?? []
  const words = argv.slice(place.split(' ').length)
  const problem = optionProblem(words, options) ?? argumentProblem(words, options, command)
  return problem && `${command.path} ${problem}\n`
}

/** The command that a line begins with; the longest that does. */
function commandOf(program: string, argv: readonly string[], definitions: readonly Definition[]) {
  return definitions
    .filter(({ path }) => path.startsWith(`${program} `))
    .filter(({ path }) =>
      path
        .split(' ')
        .slice(1)
        .every((word, index) => argv[index] === word),
    )
    .sort((a, b) => b.path.length - a.path.length)[0]
}

function optionProblem(words: readonly string[], options: readonly KnownOption[]): string | undefined {
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    if (word === '--') return undefined
    if (!word.startsWith('-') || word === '-' || /^-\d/.test(word)) continue
    const name = word.split('=', 1)[0]!
    const known = options.find(one => one.names.includes(name))
    if (known === undefined) {
      const meant = nearest(
        name,
        options.flatMap(one => one.names),
      )
      return `has no option ${name}: ${meant === undefined ? 'add --help to see what it takes' : `did you mean ${meant}?`}`
    }
    if (!known.takesValue || word.includes('=')) continue
    at++
    if (at >= words.length) return `needs a value behind ${name}`
  }
  return undefined
}

function argumentProblem(words: readonly string[], options: readonly KnownOption[], command: Definition) {
  const given: string[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    const known = options.find(one => one.names.includes(word))
    if (known?.takesValue) at++
    else if (!word.startsWith('-') || word === '-') given.push(word)
  }
  const needed = [...command.usage.matchAll(/<([^<>]+)>/g)].map(match => match[1]!)
  const missing = needed[given.length]
  const usage = `Usage: ${usageOf(command)}`
  if (missing !== undefined) return `needs <${missing}>. ${usage}`
  const without = command.options.find(one => one.required && !words.some(word => isOneOf(word, one.definition)))
  if (without !== undefined) return `needs ${without.definition.trim().split(/[ ,]/, 1)[0]}. ${usage}`
  const taken = [...command.usage.matchAll(/<[^<>]+>|\[[^[\]]+\]/g)].length
  const beyond = command.usage.includes('...') ? undefined : given[taken]
  return beyond === undefined ? `does not read like that. ${usage}` : `does not take "${beyond}". ${usage}`
}

/** Whether a word of the line gives the option that a definition such as `-t,--tenant #0` is of. */
function isOneOf(word: string, definition: string): boolean {
  return definition
    .split(/[ ,]/)
    .filter(name => name.startsWith('-'))
    .includes(word.split('=', 1)[0]!)
}

/** A word that begins several commands is answered with them. */
function unknownCommand(
  program: string,
  argv: readonly string[],
  definitions: readonly Definition[],
): string | undefined {
  const end = argv.findIndex(word => word.startsWith('-'))
  const words = end < 0 ? argv : argv.slice(0, end)
  const first = words[0]
  if (first === undefined) return undefined
  const paths = definitions.map(({ path }) => path.replace(`${program} `, '')).filter(path => !path.startsWith('-'))
  const group = paths.filter(path => path.startsWith(`${first} `))
  const meant = nearest(words.slice(0, 2).join(' '), paths) ?? nearest(first, paths)
  const hint =
    meant !== undefined
      ? `did you mean "${program} ${meant}"?`
      : group.length > 0
        ? `there are ${group.map(path => `"${program} ${path}"`).join(', ')}`
        : `"${program} help" lists them all`
  return `${program} has no command "${words.slice(0, group.length > 0 ? 2 : 1).join(' ')}": ${hint}\n`
}
