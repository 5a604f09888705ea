import type { Context } from 'hono'

/** Where a reader of a stream stopped, as browsers say it when they connect again; undefined for a first connection. */
export function lastEventId(context: Context): number | undefined {
  const last = /^\d{1,15}$/.exec(context.req.header('last-event-id') ?? '')?.[0]
  return last === undefined ? undefined : Number(last)
}
