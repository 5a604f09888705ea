import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import type { StoredEvals } from '../traces/evals.ts'

/** `router evals`: how gates and reported outcomes stand. */
export class EvalsCommand extends Command {
  static override paths = [['evals']]
  static override usage = Command.Usage({
    description: 'Show gate verdicts, served rungs and reported outcomes.',
    details: 'Reads the store. Only the running router knows which gates are switched off right now (`GET /-/evals`).',
    examples: [['Since a day', '$0 evals --since 2026-01-01']],
  })

  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  tenant = Option.String('--tenant', { description: 'Only this tenant.' })
  since = Option.String('--since', { description: 'A day or an ISO 8601 time.' })
  until = Option.String('--until', { description: 'A day or an ISO 8601 time, not included.' })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    const { readFlags, readStore } = await import('./read-store.ts')
    const { evalsQuery } = await import('../../shared/wire/router/evals.ts')
    const query = readFlags(evalsQuery, { since: this.since, until: this.until })
    const found = await readStore(this.context.env, this, reads => reads.evals(query, this.tenant))
    this.context.stdout.write(this.json ? jsonText(found) + '\n' : await shown(found))
    return 0
  }
}

async function shown({ requests, escalations, failovers, served_by_rung, latency, gates, outcomes }: StoredEvals) {
  const { toTable, usdText } = await import('../../shared/cli/text-table.ts')
  const rungs = Object.entries(served_by_rung).map(([rung, served]) => `rung ${rung}: ${served}`)
  const ms = (value: number | null) => (value === null ? '-' : String(value))
  const rows = gates.map(({ gate_id, pass, fail, abstain, cost_usd, p50_ms, p95_ms }) => [
    gate_id,
    ...[pass, fail, abstain].map(String),
    usdText(cost_usd),
    ms(p50_ms),
    ms(p95_ms),
  ])
  return (
    `${requests} requests, ${escalations} escalations, ${failovers} failovers\n` +
    `served by ${rungs.join(', ') || 'no rung'}\n` +
    `latency p50 ${ms(latency.p50_ms)} ms, p95 ${ms(latency.p95_ms)} ms, of ${latency.calls} calls\n` +
    `outcomes reported ${outcomes.reported}, failed ${outcomes.failed}\n` +
    (rows.length === 0 ? '' : toTable(['gate', 'pass', 'fail', 'abstain', 'cost USD', 'p50 ms', 'p95 ms'], rows))
  )
}
