import { pageMerger } from '../../shared/metrics/merge-pages.ts'

/** The pages of a router's processes, or of its shards. */
export const routerPages = pageMerger({
  summed: ['router_in_flight_requests', 'router_queue_depth', 'router_spill_bytes', 'router_savings_usd'],
  lasting: ['router_savings_usd'],
})
