import { z } from 'zod'
import { query } from '../aliases.ts'
import { count } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { agentName, timestamp, usd } from './conventions.ts'
import { runErrorCode } from './run.ts'

export const overviewRanges = ['1h', '24h', '7d', '30d'] as const
export type OverviewRange = (typeof overviewRanges)[number]

export const overviewQuery = query({ range: z.enum(overviewRanges).default('24h') })

/** Runs that ended in some time; a percentile is null where none of them succeeded or failed. */
const ended = {
  succeeded: count,
  failed: count,
  cancelled: count,
  costUsd: usd,
}
const figures = z.object({
  ...ended,
  p50Ms: z.number().min(0).nullable(),
  p95Ms: z.number().min(0).nullable(),
})
export type OverviewFigures = z.infer<typeof figures>

const part = z.object({ ...ended, costsUsd: z.array(usd) })

export const overview = named(
  'Overview',
  z.object({
    range: z.enum(overviewRanges),
    from: timestamp,
    to: timestamp,
    slotMs: count,
    /** Runs that are not over now, whatever the range. */
    open: z.object({
      queued: count,
      running: count,
      waiting: count,
      /** Decisions that runs wait for. */
      approvals: count,
      oldestQueuedAt: timestamp.optional(),
    }),
    total: figures,
    /** Calls without a price on the days that the range touches, which are part of no cost. */
    unpricedCalls: count,
    /** The same length of time before the range. */
    before: figures,
    slots: z.array(figures.extend({ from: timestamp })),
    /** The most costly first; what is not among them is in the one without a name. `costsUsd` has one entry for each slot. */
    agents: z.array(part.extend({ agentName: agentName.optional() })),
    models: z.array(part.extend({ model: z.string().optional() })),
    /** The most frequent first. */
    failures: z.array(z.object({ code: runErrorCode, agentName, runs: count })),
    /** Failed runs of causes that are not in `failures`. */
    failuresOmitted: count,
  }),
)
export type Overview = z.infer<typeof overview>
