import { Command, Option, UsageError } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import type { ReportRow } from '../calibrate/report.ts'
import type { RouteReport } from './calibrate-run.ts'

/** Rows of a table on a terminal; --json prints all. */
const MAX_ROWS = 40

/** `router calibrate`: which serve thresholds the reported outcomes certify. */
export class CalibrateCommand extends Command {
  static override paths = [['calibrate']]
  static override usage = Command.Usage({
    description: 'Say from the reported outcomes which serve threshold of each route is certified.',
    details: `
      Shows for every score, from the highest down, how many served answers had at least that score, how many of them failed, and
      whether their failure rate is proven to be at most alpha with confidence 1 - delta. Answers of one score count together. Defaults
      are those of the config that was used last. Answers younger than its feedback_delay_s are left out, because their failures may still be
      reported.

      This holds for one look at the answers of a score. /v1/capabilities says whether everything that a route serves is certified, at
      every look.

      --apply pins the certified threshold of method ltt: a running router serves by it within a second and does not adapt it, until
      --unpin.
    `,
    examples: [
      ['Every route', '$0 calibrate'],
      ['One route, with a part kept apart as a check', '$0 calibrate --route 0 --holdout 0.5'],
      ['Pin it, or fail', '$0 calibrate --route 0 --apply --require-certified'],
    ],
  })

  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  route = Option.String('--route', { description: 'Only this route of the config that was used last, counted from 0.' })
  tenant = Option.String('--tenant', { description: 'Only this tenant.' })
  alpha = Option.String('--alpha', { description: 'Failure rate that may not be exceeded, 0.001 to 0.5.' })
  delta = Option.String('--delta', { description: 'How often the claim may be wrong, 0.001 to 0.5.' })
  minN = Option.String('--min-n', { description: 'Scores with fewer answers are not tested.' })
  method = Option.String('--method', 'ltt', { description: 'ltt (exact), conformal (Hoeffding) or eprocess.' })
  holdout = Option.String('--holdout', {
    description: 'Share of the newest answers that is held out and only reported on, 0 to 0.9.',
  })
  apply = Option.Boolean('--apply', false, { description: 'Pin the certified threshold.' })
  unpin = Option.Boolean('--unpin', false, { description: 'Let the threshold adapt again.' })
  requireCertified = Option.Boolean('--require-certified', false, {
    description: 'Fail when a route is not certified.',
  })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    const { REPORT_METHODS } = await import('../calibrate/report.ts')
    const method = REPORT_METHODS.find(one => one === this.method)
    if (method === undefined) throw new UsageError(`--method takes ${REPORT_METHODS.join(', ')}, not ${this.method}.`)
    if (this.apply && this.unpin) throw new UsageError('Give --apply or --unpin, not both.')
    if (this.apply && method !== 'ltt')
      throw new UsageError('--apply pins what method ltt certifies: leave --method out.')
    const { runCalibrate } = await import('./calibrate-run.ts')
    const reports = await runCalibrate({
      vars: this.context.env,
      address: this.db,
      tenant: this.tenant,
      route: whole('--route', this.route, 0),
      alpha: share('--alpha', this.alpha, 0.001, 0.5),
      delta: share('--delta', this.delta, 0.001, 0.5),
      minN: whole('--min-n', this.minN, 1),
      method,
      holdout: share('--holdout', this.holdout, 0, 0.9) ?? 0,
      apply: this.apply,
      unpin: this.unpin,
    })
    this.context.stdout.write(this.json ? jsonText({ routes: reports }) + '\n' : await shown(reports))
    const proven = reports.length > 0 && reports.every(({ certified }) => certified)
    return this.requireCertified && !proven ? 1 : 0
  }
}

function share(flag: string, text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new UsageError(`${flag} takes a number from ${least} to ${most}, not ${text}.`)
}

function whole(flag: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text) && Number(text) >= least) return Number(text)
  throw new UsageError(`${flag} takes a whole number from ${least}, not ${text}.`)
}

async function shown(reports: readonly RouteReport[]): Promise<string> {
  if (reports.length === 0) return 'not certified: n=0, no outcome of a routed answer was reported yet\n'
  const { lengthOf, percent } = await import('../calibrate/report.ts')
  const parts: string[] = []
  for (const report of reports) {
    const { tenant_id, route_ix, route_fp, text, table, rung0, holdout, pinned } = report
    const route = route_ix === null ? `a route that is no longer used (${route_fp.slice(0, 12)})` : `route ${route_ix}`
    const lines = [`${tenant_id}, ${route}: ${text}`]
    if (pinned !== null) lines.push(`pinned at ${pinned}`)
    if (report.too_young > 0) {
      const age = lengthOf(report.feedback_delay_s * 1000)
      lines.push(
        `left out, ${report.too_young} answers younger than ${age} (feedback_delay_s): a failure may still be reported`,
      )
    }
    if (report.passed_over > 0) {
      lines.push(
        `before ${report.passed_over} of them an answer of a lower rung was passed over for its score: a threshold as low as that would ` +
          'have served it, so there they count as failed',
      )
    }
    lines.push(`all rungs, ${report.pairs} answers:`, await tableText(table))
    if (rung0.length > 0) lines.push('served by rung 0:', await tableText(rung0))
    if (holdout) {
      const of = holdout.n === 0 ? 'none of them reach the threshold' : `${holdout.failures} of ${holdout.n} failed`
      const rate = holdout.rate === null ? '' : ` (${percent(holdout.rate)}, at most ${percent(holdout.upper ?? 1)})`
      lines.push(`kept apart, ${holdout.pairs} answers: ${of}${rate}`)
    }
    parts.push(lines.join('\n'))
  }
  return parts.join('\n\n') + '\n'
}

async function tableText(rows: readonly ReportRow[]): Promise<string> {
  const { toTable } = await import('../../shared/cli/text-table.ts')
  const measure = rows[0]?.evidence === undefined ? ['upper bound', 'p'] : ['evidence']
  const cells = rows
    .slice(0, MAX_ROWS)
    .map(({ lambda, n, failures, rate, ucb, p, evidence, outcome }) => [
      String(lambda),
      String(n),
      String(failures),
      rate.toFixed(5),
      ...(evidence === undefined ? [(ucb ?? 0).toFixed(5), (p ?? 0).toPrecision(4)] : [evidence.toPrecision(4)]),
      outcome,
    ])
  const more = rows.length > MAX_ROWS ? `… ${rows.length - MAX_ROWS} more\n` : ''
  return (toTable(['score from', 'n', 'failed', 'rate', ...measure, ''], cells) + more).trimEnd()
}
