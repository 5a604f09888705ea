import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import { styleOf } from '../../shared/cli/style.ts'
import { usdText } from '../../shared/cli/text-table.ts'
import type { RuntimeClient } from '../../shared/client/client.ts'
import { type Run, runStatuses, triggerKinds } from '../../shared/wire/runtime/run.ts'
import { progress, unpricedText } from './progress.ts'
import { requestText } from './request-text.ts'
import { givenInput, ServiceCommand, WHERE } from './service-command.ts'
import { listVerb, membersText, oneOf, timeText, verb, wholeNumber } from './verb.ts'

const RUN_ID = 'The id of a run, as `runtime runs list` and `runtime run` print it.'

export const RunsListCommand = listVerb('runs list', {
  about: 'List runs, the newest first.',
  details: 'Turns of sessions are runs as well; --trigger session lists them.',
  examples: [
    ['What failed', 'runs list --status failed'],
    ['Ids for another program', 'runs list --agent helper --quiet'],
  ],
  options: {
    agent: 'Only runs of this agent.',
    status: `One of ${runStatuses.join(', ')}.`,
    trigger: `One of ${triggerKinds.join(', ')}.`,
    session: 'Only turns of this session.',
    schedule: 'Only runs that this schedule started.',
    parent: 'Only runs that this run started.',
  },
  rows: (client, { agent, status, trigger, session, schedule, parent }) =>
    client.runs.list.each({
      query: {
        fields: 'summary',
        agentName: agent,
        status: oneOf('--status', status, runStatuses),
        trigger: oneOf('--trigger', trigger, triggerKinds),
        sessionId: session,
        scheduleId: schedule,
        parentRunId: parent,
      },
    }),
  columns: [
    ['RUN', run => run.id],
    ['AGENT', run => run.agentName],
    ['STATUS', run => run.status],
    ['CREATED', run => timeText(run.createdAt)],
    ['USD', run => usdText(run.treeCostUsd ?? run.costUsd) + unpricedText(run.unpricedCalls)],
    ['ERROR', run => run.error?.message ?? run.cancelReason],
  ],
  empty: 'No such run. `runtime run <agent> "…"` starts one.',
})

export const RunsGetCommand = verb('runs get', {
  about: 'Show a run: its state, cost, input and output.',
  details: RUN_ID,
  words: ['run'],
  act: (client, { run }) => client.runs.get({ params: { id: run } }),
  show: runText,
})

export const RunsCancelCommand = verb('runs cancel', {
  about: 'Stop a run; what it has done stays in its journal.',
  details: RUN_ID,
  words: ['run'],
  options: { reason: 'Why; it is kept with the run.' },
  act: (client, { run, reason }) => client.runs.cancel({ params: { id: run }, body: { reason } }),
  show: ({ id, status }) => `${id} ${status}`,
})

export const RunsRetryCommand = verb('runs retry', {
  about: 'Start a failed or cancelled run again from its first failed step, as a new run.',
  details: RUN_ID,
  words: ['run'],
  act: (client, { run }) => client.runs.retry({ params: { id: run } }),
  show: ({ id, status }) => `${id} ${status}`,
})

export const RunsForkCommand = verb('runs fork', {
  about: 'Start a new run from a step of another. The steps before it are reused and not paid for again.',
  details: RUN_ID,
  examples: [['Again from the third model call', 'runs fork 0190… model-3']],
  words: ['run', 'step'],
  options: { input: 'Another input, as a JSON object.' },
  act: (client, { run, step, input }) =>
    client.runs.fork({
      params: { id: run },
      body: { fromStepId: step, ...(input !== undefined && { input: givenInput(input) }) },
    }),
  show: ({ id, status }) => `${id} ${status}`,
})

export const RunsDeleteCommand = verb('runs delete', {
  about: 'Delete a run that has ended, with its journal. Its receipt and its usage stay.',
  details: RUN_ID,
  words: ['run'],
  act: (client, { run }) => client.runs.remove({ params: { id: run } }),
  show: (_, { run }) => `${run} deleted`,
})

/** `runtime runs logs`: the journal of a run as it reads in a terminal. */
export class RunsLogsCommand extends ServiceCommand {
  static override paths = [['runs', 'logs']]
  static override usage = Command.Usage({
    description: 'Print the steps of a run, with what each took and what the run has cost so far.',
    details: `${RUN_ID}\n\n${WHERE}`,
    examples: [['Until it ends', '$0 runs logs 0190… --follow']],
  })

  run = Option.String({ name: 'run' })
  follow = Option.Boolean('--follow', false, { description: 'Follow new steps until the run ends.' })
  json = Option.Boolean('--json', false, { description: 'Print each event of the journal as a line of JSON.' })

  protected async act(client: RuntimeClient): Promise<number> {
    const { stdout, env } = this.context
    const shown = progress(styleOf(stdout, env))
    const live = this.follow ? 'true' : 'false'
    for await (const { data } of client.runs.events({ params: { id: this.run }, query: { live } })) {
      if (this.json) this.say(jsonText(data))
      else for (const line of shown.of(data)) this.say(line)
    }
    return 0
  }
}

export const RunsRequestCommand = verb('runs request', {
  about: 'Show what a model step sent and got.',
  details:
    'The system prompt, the messages with their tool calls and results, the answer, tokens and cost. A long conversation comes in pages, the newest first. Step ids are those that `runtime run` prints, such as model-3.',
  examples: [
    ['The third call of a run', 'runs request 0190… model-3'],
    ['The messages before', 'runs request 0190… model-3 --before 40'],
  ],
  words: ['run', 'step'],
  options: { before: 'Only the messages before that place, counted from 0.' },
  act: (client, { run, step, before }) =>
    client.runs.stepRequest({
      params: { id: run, stepId: step },
      query: { before: wholeNumber('--before', before, { least: 1 }) },
    }),
  show: requestText,
})

const parkedText = ({ reason, until }: NonNullable<Run['parked']>) =>
  reason.replaceAll('_', ' ') + (until === undefined ? '' : `, until about ${timeText(until)}`)

function runText(run: Run): string {
  const { output, input } = run
  const members = membersText({
    run: run.id,
    agent: run.agentName,
    status: run.status,
    'waits for': run.parked && parkedText(run.parked),
    model: run.model,
    created: timeText(run.createdAt),
    finished: timeText(run.finishedAt),
    tokens: `${run.tokensIn} in, ${run.tokensOut} out`,
    USD: usdText(run.costUsd) + unpricedText(run.unpricedCalls),
    'USD with sub-runs': run.treeCostUsd === undefined ? undefined : usdText(run.treeCostUsd),
    isolation: run.isolation.used ?? run.isolation.declared,
    node: run.nodeId,
    session: run.sessionId,
    parent: run.parentRunId,
    cancelled: run.cancelReason,
    error: run.error && `${run.error.code}: ${run.error.message}`,
  })
  const bodies = [
    ...(input === undefined ? [] : [`\ninput\n${JSON.stringify(input, null, 2)}`]),
    ...(output === undefined ? [] : [`\noutput\n${JSON.stringify(output, null, 2)}`]),
  ]
  return [members, ...bodies].join('\n')
}
