import { Command, Option, UsageError } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import type { Estimate, Metric } from '../ope/estimate.ts'
import type { Rehearsal } from '../ope/rehearse.ts'

const METRICS: readonly Metric[] = ['cost', 'failure']

/** `router ope`: what another start or another config would have cost, from the receipts alone. */
export class OpeCommand extends Command {
  static override paths = [['ope']]
  static override usage = Command.Usage({
    description:
      'Estimate from the receipts what another start rung or routing config would have cost, and how often it would have failed.',
    details: `
      Each receipt has the probability with which its start was chosen. The requests that happened to start as the rehearsed policy would
      can therefore stand for the others: by weight (IPS), by weights that sum to one (SNIPS), and corrected by the logged means (DR), each
      with the middle 95 % of a seeded bootstrap. A config is also replayed directly over the attempts that were made, as far as they
      reach. Starts chosen with probability 1 say nothing about other starts: let a route explore first (epsilon in [learning]).

      It calls nothing and writes nothing. Exit code 0: done. 1: no request by which the rehearsed policy could be judged. 2: wrong use, or
      a config that does not load. 3: the store cannot be read.
    `,
    examples: [
      ['Start everything one rung up', '$0 ope --start-rung 1'],
      [
        'What would this config have cost since the first of the month?',
        '$0 ope --config next.toml --metric cost --since 2026-03-01',
      ],
    ],
  })

  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  startRung = Option.String('--start-rung', {
    description: 'Rehearse this start for every request, 0 is the cheapest.',
  })
  config = Option.String('--config', { description: 'Rehearse the routes of this routing config.' })
  metric = Option.String('--metric', { description: 'cost or failure; without it both.' })
  tenant = Option.String('--tenant', { description: 'Only this tenant.' })
  since = Option.String('--since', { description: 'A day or an ISO 8601 time.' })
  until = Option.String('--until', { description: 'A day or an ISO 8601 time, not included.' })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    if ((this.startRung === undefined) === (this.config === undefined)) {
      throw new UsageError('Give --start-rung or --config: one of them is the policy to rehearse.')
    }
    if (this.startRung !== undefined && !/^\d{1,2}$/.test(this.startRung)) {
      throw new UsageError(`--start-rung takes the number of a rung, such as 1, not ${this.startRung}.`)
    }
    const metrics = METRICS.filter(one => this.metric === undefined || one === this.metric)
    if (metrics.length === 0) throw new UsageError(`--metric takes ${METRICS.join(' or ')}, not ${this.metric}.`)
    const { runOpe } = await import('./ope-run.ts')
    const rehearsals = await runOpe({
      vars: this.context.env,
      address: this.db,
      startRung: this.startRung === undefined ? undefined : Number(this.startRung),
      configFile: this.config,
      metrics,
      tenant: this.tenant,
      window: { since: this.since, until: this.until },
    })
    this.context.stdout.write(this.json ? jsonText({ rehearsals }) + '\n' : await shown(rehearsals))
    const isJudged = ({ ips, direct }: Rehearsal) => ips !== null || (direct !== undefined && direct.n > 0)
    return rehearsals.some(isJudged) ? 0 : 1
  }
}

async function shown(rehearsals: readonly Rehearsal[]): Promise<string> {
  const { toTable } = await import('../../shared/cli/text-table.ts')
  const share = (value: number) => `${(value * 100).toFixed(1)} %`
  const parts = rehearsals.map(({ metric, n, ess, coverage, logged, ips, snips, dr, direct, warnings }) => {
    const number = (value: number) => (metric === 'cost' ? value.toFixed(9) : value.toFixed(5))
    const row = (name: string, one: Estimate | null) => [
      name,
      ...(one === null ? ['-', '', ''] : [one.value, ...one.ci].map(number)),
    ]
    const head = [metric === 'cost' ? 'USD a request' : 'share that failed', 'estimate', '95 % from', 'to']
    const table = toTable(head, [row('as logged', logged), row('IPS', ips), row('SNIPS', snips), row('DR', dr)])
    const walked =
      direct === undefined
        ? ''
        : `walked directly, ${direct.n} requests (${share(direct.coverage)}):\n` +
          toTable(head, [row('as logged', direct.logged), row('this config', direct.rehearsed)])
    const notes = warnings.map(warning => `warning: ${warning}\n`).join('')
    const about = `${metric}: ${n} requests, ${share(coverage)} started as rehearsed, worth ${ess.toFixed(1)} rows\n`
    return about + table + walked + notes
  })
  return parts.join('\n')
}
