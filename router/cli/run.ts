import { Transform } from 'node:stream'
import { Builtins, Cli } from 'clipanion'
import { withoutPlaces } from '../../shared/cli/group-help.ts'
import { unknownCommand } from '../../shared/cli/unknown-command.ts'
import { VERSION } from '../../shared/version.ts'
import { COMMANDS } from './commands.ts'
import { exitCodeOf, USAGE } from './exit-code.ts'

const input = process.argv.slice(2)
// Without a command the framework answers with its help.
const isHelp = input.length === 0 || input.some(one => one === '--help' || one === '-h')
const cli = new Cli({ binaryLabel: 'Waybill router', binaryName: 'router', binaryVersion: VERSION })
for (const builtin of [Builtins.HelpCommand, Builtins.VersionCommand]) cli.register(builtin)
process.exitCode = await run()

async function run(): Promise<number> {
  for (const load of wanted(input[0])) cli.register(await load())
  const context = isHelp ? { ...Cli.defaultContext, stdout: plainHelp() } : Cli.defaultContext
  const command = parse()
  if (command === undefined) return USAGE
  // What a command refuses comes out of `execute`, so that the reason decides the exit code; the framework knows only 1.
  const execute = command.execute.bind(command)
  command.execute = async () => {
    try {
      return await execute()
    } catch (error) {
      const code = exitCodeOf(error)
      if (code === undefined || !(error instanceof Error)) throw error
      context.stderr.write(error.message + '\n')
      return code
    }
  }
  return cli.run(command, context)
}

function wanted(first: string | undefined) {
  if (first === '--version' || first === '-v') return []
  const own = first !== undefined && Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : undefined
  // What can be completed is all that there is.
  if (first === 'completion') return Object.values(COMMANDS)
  return own === undefined ? Object.values(COMMANDS) : [own]
}

function parse() {
  try {
    return cli.process(input)
  } catch (error) {
    const unknown = unknownCommand('router', input, cli.definitions())
    process.stderr.write(unknown ?? withoutPlaces(cli.error(error, { colored: false })))
    return undefined
  }
}

function plainHelp(): Transform {
  const out = new Transform({ transform: (chunk, _encoding, done) => done(null, withoutPlaces(String(chunk))) })
  out.pipe(process.stdout)
  return out
}
