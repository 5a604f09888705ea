import { Command, Option, UsageError } from 'clipanion'
import type { RuntimeClient } from '../../shared/client/client.ts'
import { requestText } from './request-text.ts'
import { ServiceCommand, WHERE } from './service-command.ts'

/** `runtime runs request`: what a model step sent and got. */
export class RunsRequestCommand extends ServiceCommand {
  static override paths = [['runs', 'request']]
  static override usage = Command.Usage({
    description: 'Show what a model step sent and got.',
    details: `
      ${WHERE} The system prompt, the messages with their tool calls and results, the answer, tokens and cost. A long conversation
      comes in pages, the newest first. Step ids are those that \`runtime run\` prints, such as model-3.
    `,
    examples: [
      ['The third call of a run', '$0 runs request 0190… model-3'],
      ['The messages before', '$0 runs request 0190… model-3 --before 40'],
      ['For a program', '$0 runs request 0190… model-3 --json'],
    ],
  })

  run = Option.String({ name: 'run' })
  step = Option.String({ name: 'step' })
  before = Option.String('--before', { description: 'Only the messages before that place, counted from 0.' })
  json = Option.Boolean('--json', false, { description: 'Print the whole answer as JSON.' })

  protected async act(client: RuntimeClient): Promise<number> {
    const before = this.before === undefined ? undefined : Number(this.before)
    if (before !== undefined && !(Number.isSafeInteger(before) && before > 0)) {
      throw new UsageError('--before: expected the place of a message, 1 or more')
    }
    const params = { id: this.run, stepId: this.step }
    const told = await client.runs.stepRequest({ params, query: { ...(before !== undefined && { before }) } })
    this.say(this.json ? JSON.stringify(told) : requestText(told))
    return 0
  }
}
