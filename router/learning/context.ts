import type { Features } from '../../shared/wire/router/trace.ts'

type Seen = Pick<Features, 'agent' | 'size_bucket' | 'tool_count' | 'image_count'>

/** What a policy sees of a request, beside its route (docs/spec/router.md §7.5). */
export function contextOf({ agent, size_bucket, tool_count, image_count }: Seen): string {
  return JSON.stringify([agent, Math.floor(size_bucket / 2), tool_count > 0, image_count > 0])
}

/** All requests of a route: what stands in for a context that was seen too rarely. */
export const WHOLE_ROUTE = ''
