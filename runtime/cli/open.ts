import { spawn } from 'node:child_process'
import { Command, Option } from 'clipanion'
import { isTty } from '../../shared/cli/style.ts'
import { currentContext } from './contexts.ts'
import { addressOf, DEFAULT_URL } from './service-command.ts'

/** `runtime open`: the dashboard, in a browser. */
export class OpenCommand extends Command {
  static override paths = [['open']]
  static override usage = Command.Usage({
    description: 'Open the dashboard in a browser, and print its address.',
    details: 'The browser asks for a login the first time; the address contains no key.',
    examples: [['A run', '$0 open 0190…']],
  })

  run = Option.String({ name: 'run', required: false })
  url = Option.String('--url', { description: `The address of the runtime; default ${DEFAULT_URL}.` })
  print = Option.Boolean('--print', false, { description: 'Only print the address.' })

  override async execute(): Promise<number> {
    const { stdout, env } = this.context
    const base = addressOf(this.url || env.PLATFORM_URL || (await currentContext(env))?.url || DEFAULT_URL)
    const address = new URL(this.run === undefined ? '/' : `/runs/${encodeURIComponent(this.run)}`, base).href
    stdout.write(address + '\n')
    if (!this.print && isTty(stdout)) await browse(address)
    return 0
  }
}

/** A machine without a browser has the printed address. */
function browse(address: string): Promise<void> {
  const [command, ...args] =
    process.platform === 'darwin' ? ['open'] : process.platform === 'win32' ? ['explorer.exe'] : ['xdg-open']
  return new Promise(resolve => {
    const child = spawn(command!, [...args, address], { stdio: 'ignore', detached: true })
    child.once('error', () => resolve())
    child.once('spawn', () => {
      child.unref()
      resolve()
    })
  })
}
