import { Command, Option, UsageError } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'

/** `node-agent doctor`: which backends work here, by running each. */
export class DoctorCommand extends Command {
  static override paths = [['doctor']]
  static override usage = Command.Usage({
    description: 'Try every isolation backend and say which work, how that was verified, and what to install.',
    details: `
      Each probe starts a sandbox, runs a command in it and ends it, within a deadline. It first removes what earlier processes left
      behind. Exit code 1: no backend works.
    `,
    examples: [
      ['Everything', '$0 doctor'],
      ['Two of them, for a program', '$0 doctor --only runc,wasm --json'],
    ],
  })

  json = Option.Boolean('--json', false, { description: 'Print JSON.' })
  only = Option.String('--only', { description: 'A comma list of backends.' })
  deadline = Option.String('--deadline', '20', { description: 'Seconds for each probe.' })

  override async execute(): Promise<number> {
    const seconds = Number(this.deadline)
    if (!(seconds > 0 && seconds <= 600)) throw new UsageError('--deadline expects seconds, from 1 to 600.')
    const only = this.only?.split(',').map(name => name.trim())
    const { backends, isBackend } = await import('../../shared/wire/runtime/isolation.ts')
    if (only?.every(isBackend) === false) throw new UsageError(`--only expects a comma list of ${backends.join(', ')}.`)
    const { namesProxy, readEnv, unreadProxy } = await import('../../shared/env/read-env.ts')
    const { nodeEnv } = await import('../env.ts')
    const { describe, examine } = await import('../isolation/doctor.ts')
    const diagnosis = await examine(readEnv(nodeEnv, this.context.env), seconds * 1000, only)
    const { env } = this.context
    const [unread] = unreadProxy(env)
    if (unread !== undefined) diagnosis.host.network = unread
    if (namesProxy(env)) diagnosis.host.network = (await import('../../shared/host/proxy-agent.ts')).networkWords(env)
    this.context.stdout.write(this.json ? `${jsonText(diagnosis)}\n` : describe(diagnosis))
    return diagnosis.probes.some(({ available }) => available) ? 0 : 1
  }
}
