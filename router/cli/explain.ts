import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'

/** `router explain <id>`: why a request was routed as it was. */
export class ExplainCommand extends Command {
  static override paths = [['explain']]
  static override usage = Command.Usage({
    description: 'Say why a request was routed as it was.',
    details: 'The id is a trace id, a response id or a request id. Exit code 1: no such decision.',
    examples: [['A decision', '$0 explain 0199e3c0-0000-7000-8000-000000000000']],
  })

  id = Option.String({ required: true })
  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  tenant = Option.String('--tenant', { description: 'Only this tenant.' })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    const { readStore } = await import('./read-store.ts')
    const { explain } = await import('../audit/explain.ts')
    const { env, stdout, stderr } = this.context
    const found = await readStore(env, this, reads => reads.find(this.id, this.tenant))
    if (found === undefined) {
      stderr.write(`The store has no decision with the id ${this.id}.\n`)
      return 1
    }
    const explained = explain(found.trace)
    if (this.json) {
      stdout.write(jsonText(explained) + '\n')
      return 0
    }
    stdout.write(explained.summary + '\n')
    for (const { step, decision, because } of explained.steps) stdout.write(`  ${step}: ${decision}; ${because}\n`)
    return 0
  }
}
