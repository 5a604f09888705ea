import { visible } from '../../shared/log/log.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import { givenJson, PAGE } from './service-command.ts'
import { listVerb, oneOf, timeText, verb } from './verb.ts'

export const ApprovalsListCommand = listVerb('approvals list', {
  about: 'List what waits for a human.',
  examples: [['What is open', 'approvals list']],
  switches: { all: 'Also what was decided, expired or ended with its run.' },
  rows: (client, { all }) =>
    client.approvals.list.each({ query: { limit: PAGE, ...(!all && { status: 'pending' as const }) } }),
  columns: [
    ['APPROVAL', one => one.id],
    ['AGENT', one => one.agentName],
    ['STATUS', one => one.status],
    ['WHY', one => one.reason],
    ['UNTIL', one => timeText(one.expiresAt)],
    [
      'ASKED',
      ({ action, prompt, dataAvailable }) =>
        dataAvailable === false
          ? 'cannot be shown while its node is away'
          : // Before the table drops what it does not show: what is asked about is what is sent.
            visible(
              action
                ? [action.name, JSON.stringify(action.arguments), action.to].filter(Boolean).join(' ')
                : (prompt ?? '-'),
            ),
    ],
  ],
  empty: 'Nothing waits.',
})

export const ApprovalsApproveCommand = verb('approvals approve', {
  about: 'Approve what a run asks for, so that it goes on.',
  details:
    'Answer a question with --output or --comment. A step whose outcome is unknown needs --resolution: retry repeats it under the same key, completed takes --output as its result.',
  examples: [
    ['Allow an action', 'approvals approve 0190… --comment "checked with legal"'],
    ['Answer a question', `approvals approve 0190… --output '"forty-two"'`],
    ['It was done after all', `approvals approve 0190… --resolution completed --output '{"sent":true}'`],
  ],
  words: ['approval'],
  options: {
    comment: 'Kept with the decision, and told to the run.',
    output: 'JSON: the answer, or the result of the step.',
    resolution: 'retry or completed, for a step whose outcome is unknown.',
  },
  act: (client, { approval, comment, output, resolution }) =>
    client.approvals.approve({
      params: { id: approval },
      body: {
        comment,
        resolution: oneOf('--resolution', resolution, ['retry', 'completed']),
        ...(output !== undefined && {
          output: givenJson('--output', output, `JSON; a text stands in quotes of its own, as in '"yes"'`),
        }),
      },
    }),
  show: decided,
})

export const ApprovalsRejectCommand = verb('approvals reject', {
  about: 'Refuse what a run asks for.',
  details:
    'approvals.onReject in the manifest decides what follows: the run fails, or it gets the refusal and goes on.',
  examples: [['Refuse an action', 'approvals reject 0190… --comment "not this customer"']],
  words: ['approval'],
  options: { comment: 'Kept with the decision, and told to the run.' },
  act: (client, { approval, comment }) => client.approvals.reject({ params: { id: approval }, body: { comment } }),
  show: decided,
})

function decided({ id, status, runId }: Pick<Approval, 'id' | 'status' | 'runId'>): string {
  return `${id}  ${status}  run ${runId}`
}
