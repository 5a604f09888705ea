import { type BaseContext, Builtins, Cli, type Command, type CommandClass } from 'clipanion'
import { VERSION } from '../version.ts'
import { exitCodeOf, REFUSED, USAGE } from './exit-code.ts'
import { commandHelp, groupHelp, type HelpWords, programHelp } from './help.ts'
import { styleOf } from './style.ts'
import { usageProblem } from './usage-problem.ts'

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
  const explain = (path: string): boolean => {
    const one = cli.definitions().find(definition => definition.path === path)
    if (one) context.stdout.write(commandHelp(one, program.exits, name, style))
    return one !== undefined
  }

  const asked = argv.length === 0 && program.standard === undefined ? [] : helpAsked(argv)
  if (asked?.length === 0) {
    context.stdout.write(programHelp(program, cli.definitions(), style))
    return 0
  }
  if (asked) {
    if (explain([name, ...asked].join(' '))) return 0
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
  if (command.help && explain([name, ...command.path].join(' '))) return 0
  return cli.run(answering(command, context.stderr), context)
}

function wanted({ commands }: Program, first: string | undefined) {
  if (first === '--version' || first === '-v') return []
  const own = first !== undefined && Object.hasOwn(commands, first) ? commands[first] : undefined
  // What can be completed is all that there is.
  return own === undefined || first === 'completion' ? Object.values(commands) : [own]
}

/** The words of the command that is to be explained, none of them for the program; undefined where none is asked for. */
function helpAsked(argv: readonly string[]): readonly string[] | undefined {
  const last = argv.at(-1)
  const words = argv[0] === 'help' ? argv.slice(1) : last === '--help' || last === '-h' ? argv.slice(0, -1) : undefined
  return words?.some(word => word.startsWith('-')) ? undefined : words
}

/** What a command refuses comes out of `execute`, so that the reason decides the exit code; the framework knows only 1. */
function answering(command: Command, stderr: { write(text: string): unknown }): Command {
  const execute = command.execute.bind(command)
  command.execute = async () => {
    try {
      return await execute()
    } catch (error) {
      const code = exitCodeOf(error)
      const { fileProblem } = await import('./file-problem.ts')
      const problem = code === undefined ? fileProblem(error) : error instanceof Error && error.message
      if (!problem) throw error
      stderr.write(problem + '\n')
      return code ?? REFUSED
    }
  }
  return command
}

const firstLine = (error: unknown) => (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]
