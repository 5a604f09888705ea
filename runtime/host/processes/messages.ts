import { pageMerger } from '../../../shared/metrics/merge-pages.ts'

/** What the processes of one runtime let each other know. */
export type RuntimeNotice =
  /** Runs may be due that this process can take. */
  | { wake: true }
  /** Tries to log in, under these names, at one shard. */
  | { tried: readonly string[]; shard: string }
  /** A node was announced or has enrolled: from now on a run may belong elsewhere. */
  | { engaged: true }
  /** Where the processes that answer take questions of the others. */
  | { peers: readonly string[] }

/** What a process says of itself once it answers. */
export interface RuntimeFacts {
  /** Where the others ask it for its nodes and turns. */
  peerUrl: string
  setupLink: string | undefined
}

export type RuntimeQuestion = 'page'

/** Where nodes dial in. */
export const TUNNEL_DOOR = 'tunnel'

/** The pages of metrics of a runtime's processes. Of the other gauges each reads the same from the store, or the worst of them counts. */
export const runtimePages = pageMerger({ summed: ['waybill_sse_clients'] })
