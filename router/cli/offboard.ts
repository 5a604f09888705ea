import { Command, Option, UsageError } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'

/** `router offboard`: takes back what onboard did. */
export class OffboardCommand extends Command {
  static override paths = [['offboard']]
  static override usage = Command.Usage({
    description: 'Undo `router onboard`: its lines in start-up files, and the router that it started.',
    details: `
      Removes only the lines between the marks, also when the file was edited around them, and stops only the process that onboard
      started. Traces and the log stay. Exit code 1: something could not be undone, with the reason.
    `,
    examples: [['What it would do', '$0 offboard --dry-run']],
  })

  dryRun = Option.Boolean('--dry-run', false, { description: 'Only show it.' })
  apply = Option.Boolean('--apply', false, { description: 'Do it, which is the default.' })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    if (this.dryRun && this.apply) throw new UsageError('Give --apply or --dry-run, not both.')
    const { offboard } = await import('../host/offboard.ts')
    const { env, stdout, stderr } = this.context
    const { changes, service, folder, failures } = await offboard(env, { dryRun: this.dryRun })
    const code = failures.length > 0 ? 1 : 0
    if (this.json) {
      stdout.write(jsonText({ applied: !this.dryRun, changes, service: service ?? null, failures }) + '\n')
      return code
    }
    for (const { diff } of changes) stdout.write(diff)
    if (service !== undefined) {
      const what = this.dryRun ? 'would be stopped' : 'was stopped'
      stdout.write(`The router at ${service.origin} (process ${service.pid}) ${what}; its traces stay in ${folder}.\n`)
    }
    if (changes.length === 0 && service === undefined && code === 0) stdout.write('There is nothing to take back.\n')
    else if (this.dryRun) stdout.write('Nothing was changed.\n')
    else if (changes.length > 0) {
      stdout.write('Shells that are open keep what they have: unset ANTHROPIC_BASE_URL and OPENAI_BASE_URL there.\n')
    }
    for (const failure of failures) stderr.write(failure + '\n')
    return code
  }
}
