import { Command, Option, UsageError } from 'clipanion'
import type { RuntimeClient } from '../../shared/client/client.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { ApprovalDecision } from '../../shared/wire/runtime/approval.ts'
import { PAGE, ServiceCommand, WHERE } from './service-command.ts'
import { printable } from './terminal.ts'

/** `runtime approvals list`: what waits for a human. */
export class ApprovalsListCommand extends ServiceCommand {
  static override paths = [['approvals', 'list']]
  static override usage = Command.Usage({
    description: 'List what waits for a human.',
    details: `
      ${WHERE} Each line: the id, the agent, why it is asked, until when, and what is to be decided. With --all also what was
      decided, expired or ended with its run.
    `,
    examples: [['What is open', '$0 approvals list']],
  })

  all = Option.Boolean('--all', false, { description: 'Also those that were decided or expired.' })

  protected async act(client: RuntimeClient): Promise<number> {
    const query = { limit: PAGE, ...(!this.all && { status: 'pending' as const }) }
    for await (const one of client.approvals.list.each({ query })) {
      const { id, agentName, status, reason, prompt, action, expiresAt } = one
      const asked = action ? `${action.name} ${JSON.stringify(action.arguments)}` : prompt
      const state = this.all ? [status] : []
      this.say(oneLine([id, ...state, agentName, reason, `until ${expiresAt}`, asked].join('  ')))
    }
    return 0
  }
}

abstract class DecideCommand extends ServiceCommand {
  id = Option.String({ name: 'id' })
  comment = Option.String('--comment', { description: 'Kept with the decision, and told to the run.' })

  protected abstract readonly verb: 'approve' | 'reject'
  protected decision(): ApprovalDecision {
    return { ...(this.comment !== undefined && { comment: this.comment }) }
  }

  protected async act(client: RuntimeClient): Promise<number> {
    const call = { params: { id: this.id }, body: this.decision() }
    const { id, status, runId } = await client.approvals[this.verb](call)
    this.say(`${id}  ${status}  run ${runId}`)
    return 0
  }
}

/** `runtime approvals approve`. */
export class ApprovalsApproveCommand extends DecideCommand {
  static override paths = [['approvals', 'approve']]
  static override usage = Command.Usage({
    description: 'Let a run go on.',
    details: `
      ${WHERE} A question is answered with --output or --comment. A step whose outcome is unknown needs
      --resolution: retry does it again under the same key, completed takes --output as its result.
    `,
    examples: [
      ['Allow an action', '$0 approvals approve 0190… --comment "checked with legal"'],
      ['Answer a question', `$0 approvals approve 0190… --output '"forty-two"'`],
      ['It was done after all', `$0 approvals approve 0190… --resolution completed --output '{"sent":true}'`],
    ],
  })

  output = Option.String('--output', { description: 'JSON: the answer, or the result of the step.' })
  resolution = Option.String('--resolution', { description: 'retry or completed, for a step whose fate is unknown.' })
  protected readonly verb = 'approve'

  protected override decision(): ApprovalDecision {
    const { resolution, output } = this
    if (resolution !== undefined && resolution !== 'retry' && resolution !== 'completed') {
      throw new UsageError('--resolution: expected retry or completed')
    }
    return {
      ...super.decision(),
      ...(resolution !== undefined && { resolution }),
      ...(output !== undefined && { output: givenOutput(output) }),
    }
  }
}

/** `runtime approvals reject`. */
export class ApprovalsRejectCommand extends DecideCommand {
  static override paths = [['approvals', 'reject']]
  static override usage = Command.Usage({
    description: 'Refuse what a run asks for.',
    details: `${WHERE} What becomes of the run then is said by approvals.onReject of its manifest: it fails, or it gets the refusal and goes on.`,
    examples: [['Refuse an action', '$0 approvals reject 0190… --comment "not this customer"']],
  })

  protected readonly verb = 'reject'
}

function givenOutput(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    throw new UsageError(`--output: expected JSON; a text stands in quotes of its own, as in '"yes"'`)
  }
}

function oneLine(text: string): string {
  return printable(text).replaceAll('\n', ' ')
}
