import { pageMerger } from '../../../shared/metrics/merge-pages.ts'

/** The pages of metrics of a runtime's processes. Of the other gauges each reads the same from the store, or the worst of them counts. */
export const runtimePages = pageMerger({ summed: ['waybill_sse_clients'] })
