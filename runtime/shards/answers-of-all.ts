import type { Readyz } from '../../shared/wire/runtime/health.ts'
import type { ReceiptKeys } from '../../shared/wire/runtime/receipt.ts'
import type { Connection } from '../http/http-env.ts'
import { again } from './again.ts'
import { metricsOfAll, readinessOfAll, receiptKeysOfAll } from './merged-answers.ts'
import { shardAway } from './refusals.ts'
import type { ShardService } from './shard-service.ts'

/** What is answered by every shard of a process, put together. */
export function answersOfAll(shards: () => readonly ShardService[]) {
  /** The same question to each shard that is open. */
  async function ofAll(request: Request, connection: Connection): Promise<{ shard: string; answer: Response }[]> {
    return Promise.all(
      shards().flatMap(({ name: shard, open }) =>
        open ? [open.runtime.fetch(again(request), connection).then(answer => ({ shard, answer }))] : [],
      ),
    )
  }

  return {
    async readiness(request: Request, connection: Connection): Promise<Response> {
      const answers = await ofAll(request, connection)
      const values = await Promise.all(
        answers.map(async ({ shard, answer }) => ({ shard, value: (await answer.json()) as Readyz })),
      )
      const closed = shards().flatMap(({ name: shard, open, problem }) => {
        const value = { status: 'starting' as const, checks: { database: problem ?? 'not open yet' } }
        return open ? [] : [{ shard, value }]
      })
      const now = readinessOfAll([...values, ...closed])
      return Response.json(now, { status: now.status === 'ready' ? 200 : 503 })
    },

    async metrics(request: Request, connection: Connection): Promise<Response> {
      const answers = await ofAll(request, connection)
      const refusal = answers.find(({ answer }) => !answer.ok)?.answer
      if (refusal) return refusal
      const pages = await Promise.all(answers.map(async ({ shard, answer }) => ({ shard, value: await answer.text() })))
      const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }
      return new Response(metricsOfAll(pages), { headers })
    },

    async receiptKeys(request: Request, connection: Connection): Promise<Response> {
      const answers = (await ofAll(request, connection)).filter(({ answer }) => answer.ok)
      const read = await Promise.all(answers.map(async ({ answer }) => (await answer.json()) as ReceiptKeys))
      const all = receiptKeysOfAll(read)
      return all ? Response.json(all) : shardAway()
    },
  }
}
