import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import type { Savings } from '../../shared/wire/router/savings.ts'

/** `router savings`: what was spent beside what the top rung would have cost. */
export class SavingsCommand extends Command {
  static override paths = [['savings']]
  static override usage = Command.Usage({
    description: 'Sum what was spent and saved against always using the top rung.',
    examples: [['Day by day', '$0 savings --since 2026-01-01 --group day']],
  })

  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  tenant = Option.String('--tenant', { description: 'Only this tenant.' })
  since = Option.String('--since', { description: 'A day or an ISO 8601 time.' })
  until = Option.String('--until', { description: 'A day or an ISO 8601 time, not included.' })
  group = Option.String('--group', { description: 'route, model or day.' })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    const { readFlags, readStore } = await import('./read-store.ts')
    const { savingsQuery } = await import('../../shared/wire/router/savings.ts')
    const query = readFlags(savingsQuery, { since: this.since, until: this.until, group: this.group })
    const sums = await readStore(this.context.env, this, reads => reads.savings(query, this.tenant))
    this.context.stdout.write(this.json ? jsonText(sums) + '\n' : await shown(sums))
    return 0
  }
}

async function shown(sums: Savings): Promise<string> {
  const { toTable, usdText } = await import('../../shared/cli/text-table.ts')
  const row = (key: string, one: Omit<Savings, 'groups'>) => [
    key,
    String(one.requests),
    usdText(one.spent_usd),
    usdText(one.gate_usd),
    usdText(one.baseline_same_token_usd),
    usdText(one.savings_usd),
    one.savings_pct === null ? '-' : `${one.savings_pct.toFixed(1)} %`,
    String(one.unpriced),
  ]
  const head = ['', 'requests', 'spent USD', 'of it gates', 'top rung USD', 'saved USD', 'saved', 'unpriced']
  const table = toTable(head, [...sums.groups.map(group => row(group.key, group)), row('all', sums)])
  return table + measuredText(sums, usdText)
}

/** What the shadow samples of the window measured, in one sentence. */
function measuredText({ shadow, ratio_ci }: Savings, usdText: (usd: number) => string): string {
  if (shadow === undefined) return ''
  const ratio =
    shadow.same_token_usd === 0 ? 'no ratio' : `${(shadow.measured_usd / shadow.same_token_usd).toFixed(3)} x`
  const interval = ratio_ci
    ? `95 % between ${ratio_ci.map(end => end.toFixed(3)).join(' and ')}`
    : 'too few for an interval'
  const run = shadow.requests === 1 ? '1 request was' : `${shadow.requests} requests were`
  const cost = `for ${usdText(shadow.spent_usd)} USD that stand in no line above`
  return `${run} run on the top rung as well, ${cost}: it took ${ratio} the same-token cost (${interval})\n`
}
