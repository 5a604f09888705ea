import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'

/** `runtime doctor`: what stands in the way of a start, and what to do about it. */
export class DoctorCommand extends Command {
  static override paths = [['doctor']]
  static override usage = Command.Usage({
    description: 'Examine the settings, the store and the keys that a start would use.',
    details: `
      Reads the same environment as \`$0 serve\`, and changes nothing. Each line is ok, warn or fail, with what to do.
      Exit code 0: nothing fails; 1: a start would fail, or the running service is not ready.
    `,
    examples: [
      ['Before the first start', '$0 doctor'],
      ['As JSON', '$0 doctor --json'],
    ],
  })

  json = Option.Boolean('--json', false, { description: 'Print the findings as JSON.' })

  override async execute(): Promise<number> {
    const { examine } = await import('../host/examine.ts')
    const found = await examine(this.context.env)
    const { stdout } = this.context
    if (this.json) stdout.write(jsonText(found) + '\n')
    else for (const { is, about, says } of found) stdout.write(`${is.padEnd(4)}  ${about.padEnd(12)} ${says}\n`)
    return found.some(({ is }) => is === 'fail') ? 1 : 0
  }
}
