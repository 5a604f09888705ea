import { Command, Option } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'

/** `router trace [id]`: the newest decisions, or one in full. */
export class TraceCommand extends Command {
  static override paths = [['trace']]
  static override usage = Command.Usage({
    description: 'Show the newest decisions, or one of them in full.',
    details: 'The id is a trace id, a response id or a request id. Exit code 1: no such decision.',
    examples: [
      ['The last twenty', '$0 trace --limit 20'],
      ['One in full', '$0 trace 0199e3c0-0000-7000-8000-000000000000'],
    ],
  })

  id = Option.String({ required: false })
  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  tenant = Option.String('--tenant', { description: 'Only this tenant.' })
  limit = Option.String('--limit', { description: 'How many, 1 to 500 (50).' })
  json = Option.Boolean('--json', false, { description: 'Print JSON.' })

  override async execute(): Promise<number> {
    const { readFlags, readStore } = await import('./read-store.ts')
    const { traceListQuery } = await import('../../shared/wire/router/traces.ts')
    const { id, tenant } = this
    const { env, stdout } = this.context
    const query = readFlags(traceListQuery, { limit: this.limit })
    if (id === undefined) {
      const list = await readStore(env, this, reads => reads.list(query, tenant))
      stdout.write(this.json ? jsonText(list) + '\n' : await listed(list.traces))
      return 0
    }
    const found = await readStore(env, this, reads => reads.find(id, tenant))
    if (found === undefined) return this.unknown(id)
    stdout.write(this.json ? jsonText(found) + '\n' : jsonText(found.trace, 2) + '\n')
    return 0
  }

  private unknown(id: string): number {
    this.context.stderr.write(`The store has no decision with the id ${id}.\n`)
    return 1
  }
}

async function listed(traces: readonly TraceRecord[]): Promise<string> {
  if (traces.length === 0) return 'No call is recorded here yet.\n'
  const { toTable, usdText } = await import('../../shared/cli/text-table.ts')
  const head = ['time', 'trace', 'mode', 'served', 'from', 'status', 'attempts', 'cost USD', 'saved USD']
  const rows = traces.map(({ ts, trace_id, mode, attempts, final }) => [
    ts,
    trace_id,
    mode,
    final.served_model ?? '-',
    final.served_from,
    String(final.status),
    String(attempts.length),
    usdText(final.total_cost_usd),
    usdText(final.savings_usd),
  ])
  return toTable(head, rows)
}
