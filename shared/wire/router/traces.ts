import { z } from 'zod'
import { fromText, query } from '../aliases.ts'
import { int, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { mode, traceLimit, window } from './conventions.ts'
import { feedbackRecord } from './feedback.ts'
import { servedFrom, traceRecord, unsealedTrace } from './trace.ts'

export const traceListQuery = query({
  limit: traceLimit,
  before: text(1, 512).optional(),
  mode: mode.optional(),
  route: fromText(int(0)).optional(),
  session: text(1, 512).optional(),
  served_from: servedFrom.optional(),
  ...window,
})
export type TraceListQuery = z.output<typeof traceListQuery>

/** Newest first; `next` is the `before` of the following page. */
export const traceList = named('TraceList', z.object({ traces: z.array(traceRecord), next: z.string().nullable() }))
export type TraceList = z.infer<typeof traceList>

/** A trace id, a provider's response id or a request id. */
export const traceParams = z.object({ id: text(1, 512) })

export const traceDetail = named(
  'TraceDetail',
  z.discriminatedUnion('pending', [
    z.object({ trace: traceRecord, feedback: z.array(feedbackRecord), pending: z.literal(false) }),
    z.object({ trace: unsealedTrace, feedback: z.array(feedbackRecord), pending: z.literal(true) }),
  ]),
)
export type TraceDetail = z.infer<typeof traceDetail>
