import { Builtins, Cli } from 'clipanion'
import { CompletionCommand } from '../shared/cli/completion-command.ts'
import { unknownCommand } from '../shared/cli/unknown-command.ts'
import { EnvError } from '../shared/env/read-env.ts'
import { VERSION } from '../shared/version.ts'
import { DoctorCommand } from './cli/doctor.ts'
import { ImageCommand } from './cli/image.ts'
import { RunCommand } from './cli/run.ts'

const args = process.argv.slice(2)
process.exitCode = await run()

async function run(): Promise<number> {
  const cli = new Cli({ binaryLabel: 'Waybill node', binaryName: 'node-agent', binaryVersion: VERSION })
  const own = [DoctorCommand, ImageCommand, RunCommand, CompletionCommand]
  for (const command of [Builtins.HelpCommand, Builtins.VersionCommand, ...own]) cli.register(command)
  const context = { ...Cli.defaultContext }
  let command: ReturnType<typeof cli.process>
  try {
    command = cli.process(args, context)
  } catch (error) {
    context.stderr.write(unknownCommand('node-agent', args, cli.definitions()) ?? cli.error(error))
    return 1
  }
  const execute = command.execute.bind(command)
  command.execute = async () => {
    try {
      return await execute()
    } catch (error) {
      if (!(error instanceof EnvError)) throw error
      context.stderr.write(`${error.message}\n`)
      return 2
    }
  }
  return cli.run(command, context)
}
