import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'

/** `router demo`: one decision of the real router against a mock provider, with its receipt. */
export class DemoCommand extends Command {
  static override paths = [['demo']]
  static override usage = Command.Usage({
    description: 'Route one request over a ladder of three mock models and verify its receipt.',
    details: `
      Needs no key and no network: the provider is a mock on a free loopback port, the store a temporary folder. The smallest model gives
      an empty answer, so its gate fails and the next one is asked. Exit code 1: a figure is not what it must be.
    `,
    examples: [['Look at the store afterwards', '$0 demo --keep']],
  })

  keep = Option.Boolean('--keep', false, { description: 'Keep the folder with the store and print its path.' })
  json = Option.Boolean('--json', false, { description: 'Print the receipt and the result of the check as JSON.' })

  override async execute(): Promise<number> {
    const { demoDifferences, runDemo } = await import('./demo-run.ts')
    const { explain } = await import('../audit/explain.ts')
    const { stdout, stderr } = this.context
    const { status, trace, report, folder } = await runDemo({ keep: this.keep })
    const differences = demoDifferences(status, trace, report)
    const ok = differences.length === 0
    if (this.json) {
      stdout.write(jsonText({ ok, differences, trace, verify: report, ...(this.keep && { folder }) }) + '\n')
      return ok ? 0 : 1
    }
    const { summary, steps } = explain(trace)
    stdout.write(`${summary}\n\n`)
    for (const { step, decision, because } of steps) stdout.write(`  ${step}: ${decision}; ${because}\n`)
    stdout.write(`\nThe receipt, as it is sealed in the store:\n${jsonText(trace, 2)}\n\n`)
    stdout.write(`chain: ${report.valid ? 'valid' : 'BROKEN'}, ${report.records} record, signed checkpoint\n`)
    if (this.keep) stdout.write(`kept: ${folder}\n`)
    for (const line of differences) stderr.write(line + '\n')
    return ok ? 0 : 1
  }
}
