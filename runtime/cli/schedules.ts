import { Command, Option, UsageError } from 'clipanion'
import { momentOf } from '../../shared/wire/bounds.ts'
import { readCron } from '../schedules/cron-pattern.ts'
import { previewFires } from '../schedules/next-fire.ts'
import { zoneOffset } from '../schedules/zone.ts'
import { givenInput } from './service-command.ts'
import { listVerb, timeText, verb } from './verb.ts'

/** `runtime schedules preview`: when an expression would fire, without a store or a service. */
export class SchedulesPreviewCommand extends Command {
  static override paths = [['schedules', 'preview']]
  static override usage = Command.Usage({
    description: 'Print the next times at which a cron expression fires.',
    details: `
      One line for each: the instant in UTC, then the local time with its offset. Without --timezone the zone is
      PLATFORM_DEFAULT_TIMEZONE, or UTC. When clocks change, a time that is skipped fires right after the jump, and a time that comes
      twice fires the first time; an expression with * as its hour follows elapsed time.
    `,
    examples: [
      ['Every night in Berlin', "$0 schedules preview '30 2 * * *' --timezone Europe/Berlin"],
      ['Around the end of summer time', "$0 schedules preview '30 2 * * *' --timezone Europe/Berlin --from 2026-10-24"],
    ],
  })

  cronExpr = Option.String({ name: 'expression' })
  timezone = Option.String('--timezone', { description: 'An IANA zone such as Europe/Berlin.' })
  count = Option.String('--count', '5', { description: 'How many, 1 to 50.' })
  from = Option.String('--from', { description: 'An ISO 8601 time to begin at instead of now.' })

  override async execute(): Promise<number> {
    const pattern = readCron(this.cronExpr)
    if (typeof pattern === 'string') throw new UsageError(pattern)
    const zone = this.timezone ?? (this.context.env.PLATFORM_DEFAULT_TIMEZONE || 'UTC')
    const offsetAt = zoneOffset(zone)
    if (offsetAt === undefined) throw new UsageError(`'${zone}' is no IANA time zone such as Europe/Berlin`)
    const count = Number(this.count)
    if (!Number.isInteger(count) || count < 1 || count > 50) throw new UsageError('--count: expected 1 to 50')
    const afterMs = this.from === undefined ? Date.now() : momentOf(this.from) - 1
    if (Number.isNaN(afterMs)) throw new UsageError('--from: expected a time such as 2026-10-24T00:00:00Z')
    for (const { at, local, offset } of previewFires(pattern, offsetAt, { afterMs, count })) {
      this.context.stdout.write(`${at}  ${local}${offset}\n`)
    }
    return 0
  }
}

const SCHEDULE_ID = 'The id of a schedule, as `runtime schedules list` prints it.'

export const SchedulesListCommand = listVerb('schedules list', {
  about: 'List the schedules with when each fires next.',
  options: { agent: 'Only those of this agent.' },
  rows: (client, { agent }) => client.schedules.list.each({ query: { agentName: agent } }),
  columns: [
    ['SCHEDULE', one => one.id],
    ['AGENT', one => one.agentName],
    ['CRON', one => one.cronExpr],
    ['ZONE', one => one.timezone],
    ['STATE', one => (one.enabled ? 'on' : 'paused')],
    ['NEXT', one => timeText(one.nextFireAt)],
    ['LAST ERROR', one => one.lastError],
  ],
  empty: 'No schedule yet. `runtime schedules create <agent> <expression>` makes one.',
})

export const SchedulesCreateCommand = verb('schedules create', {
  about: 'Start an agent at the times of a cron expression.',
  examples: [
    ['Each morning', `schedules create helper '0 7 * * 1-5' --timezone Europe/Berlin --prompt "What is new?"`],
  ],
  words: ['agent', 'expression'],
  options: {
    timezone: 'An IANA zone such as Europe/Berlin.',
    prompt: 'What the agent is asked.',
    input: 'The input as a JSON object, in place of a prompt.',
    name: 'What it is called.',
  },
  act: (client, { agent, expression, timezone, prompt, input, name }) => {
    if (prompt !== undefined && input !== undefined) throw new UsageError('give --prompt or --input, not both')
    const given = input === undefined ? { ...(prompt !== undefined && { prompt }) } : givenInput(input)
    return client.schedules.create({
      body: { agentName: agent, cronExpr: expression, timezone, name, config: { input: given } },
    })
  },
  show: ({ id, nextFireAt }) => `${id} fires next at ${timeText(nextFireAt) ?? 'no time'}`,
})

export const SchedulesPauseCommand = verb('schedules pause', {
  about: 'Pause a schedule until it is resumed.',
  details: SCHEDULE_ID,
  words: ['schedule'],
  act: (client, { schedule }) => client.schedules.pause({ params: { id: schedule } }),
  show: (_, { schedule }) => `${schedule} paused`,
})

export const SchedulesResumeCommand = verb('schedules resume', {
  about: 'Let a paused schedule fire again.',
  details: SCHEDULE_ID,
  words: ['schedule'],
  act: (client, { schedule }) => client.schedules.resume({ params: { id: schedule } }),
  show: (_, { schedule }) => `${schedule} resumed`,
})

export const SchedulesRunCommand = verb('schedules run', {
  about: 'Start a run of a schedule now.',
  details: SCHEDULE_ID,
  words: ['schedule'],
  act: (client, { schedule }) => client.schedules.run({ params: { id: schedule } }),
  show: ({ id, status }) => `${id} ${status}`,
})

export const SchedulesFiresCommand = listVerb('schedules fires', {
  about: 'List when a schedule fired and what came of it, the newest first.',
  details: SCHEDULE_ID,
  words: ['schedule'],
  rows: (client, { schedule }) => client.schedules.fires.each({ params: { id: schedule } }),
  columns: [
    ['DUE', fire => timeText(fire.windowAt)],
    ['FIRED', fire => timeText(fire.firedAt)],
    ['OUTCOME', fire => fire.outcome],
    ['RUN', fire => fire.runId],
    ['REASON', fire => fire.reason],
  ],
  empty: 'It has not fired yet.',
})

export const SchedulesDeleteCommand = verb('schedules delete', {
  about: 'Delete a schedule. The runs that it started stay.',
  details: SCHEDULE_ID,
  words: ['schedule'],
  act: (client, { schedule }) => client.schedules.remove({ params: { id: schedule } }),
  show: (_, { schedule }) => `${schedule} deleted`,
})
