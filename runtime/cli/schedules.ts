import { Command, Option, UsageError } from 'clipanion'
import { readCron } from '../schedules/cron-pattern.ts'
import { previewFires } from '../schedules/preview.ts'
import { zoneOffset } from '../schedules/zone.ts'

/** `runtime schedules preview`: when an expression would fire, without a store or a service. */
export class SchedulesPreviewCommand extends Command {
  static override paths = [['schedules', 'preview']]
  static override usage = Command.Usage({
    description: 'Print the next times at which a cron expression fires.',
    details: `
      One line for each: the instant in UTC, then the clock on the wall with its offset. Without --timezone the zone is
      PLATFORM_DEFAULT_TIMEZONE, else UTC. A time that the clocks jump over fires when they have jumped; one that comes
      twice fires the first time; with * as its hour an expression goes by the time that passes.
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
    const afterMs = this.from === undefined ? Date.now() : Date.parse(this.from) - 1
    if (Number.isNaN(afterMs)) throw new UsageError('--from: expected a time such as 2026-10-24T00:00:00Z')
    for (const { at, local, offset } of previewFires(pattern, offsetAt, { afterMs, count })) {
      this.context.stdout.write(`${at}  ${local}${offset}\n`)
    }
    return 0
  }
}
