import type { ResultSet } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import type { Log } from '../../shared/log/log.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { Calibration, RoutingConfig } from '../config/routing-config.ts'
import type { routingConfigs } from '../schema/tables.ts'
import { evidenceOf, givesScores } from './calibration-reads.ts'

/** What a receipt's route was, wherever it stands now. */
export interface RouteRef {
  /** What its outcomes are kept under. */
  readonly fingerprint: string
  /** A threshold that the config fixed. */
  readonly serve_threshold: number | null
}

export interface StoredConfig {
  readonly calibration: Calibration
  /** `rungs` and `scores` are missing in configs that were kept by an older version. */
  readonly routes: readonly (RouteRef & { readonly rungs?: number; readonly scores?: boolean })[]
}

/** Configs remembered at once; a router that is reloaded more often than this looks older ones up. */
const MAX_KNOWN = 100

export type RouteCache = ReturnType<typeof routeCache>

/**
 * Which route a receipt means. It names the hash of its config and a place in it, and feedback may come after that config was
 * replaced, or in another process: so every config that is used leaves its fingerprints in the store.
 */
export function routeCache({ db, clock, log }: { db: Db; clock: Clock; log: Log }) {
  const known = new Map<string, readonly RouteRef[]>()

  function learn(hash: string, routes: readonly RouteRef[]): void {
    if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value!)
    known.set(hash, routes)
  }

  return {
    /** A config is about to be used. */
    async remember({ configHash, routes, calibration, gates }: RoutingConfig): Promise<void> {
      if (routes.length === 0) return
      const refs = routes.map(route => ({ fingerprint: evidenceOf(route), serve_threshold: route.serveThreshold }))
      learn(configHash, refs)
      const body: StoredConfig = {
        calibration,
        routes: refs.map((ref, ix) => ({
          ...ref,
          rungs: routes[ix]?.ladder.length ?? 0,
          scores: givesScores(routes[ix]!, gates),
        })),
      }
      try {
        await db.execute({
          sql: `insert into routing_configs (config_hash, used_ms, body) values (?, ?, ?)
            on conflict (config_hash) do update set used_ms = max(used_ms, excluded.used_ms)`,
          args: [configHash, clock.now().getTime(), JSON.stringify(body)],
        })
      } catch (error) {
        log.error('the routes of a config could not be stored; feedback that comes after it may not find them', {
          error,
        })
      }
    },

    async find(configHash: string, routeIx: number): Promise<RouteRef | undefined> {
      let routes = known.get(configHash)
      if (routes === undefined) {
        const answer = await db.execute({
          sql: 'select body from routing_configs where config_hash = ?',
          args: [configHash],
        })
        routes = toConfig(answer)?.routes ?? []
        learn(configHash, routes)
      }
      return routes[routeIx]
    },
  }
}

/** The config that was used last, for programs beside the router. */
export async function lastConfig(db: Db): Promise<StoredConfig | undefined> {
  return toConfig(await db.execute('select body from routing_configs order by used_ms desc limit 1'))
}

function toConfig(answer: ResultSet): StoredConfig | undefined {
  const [row] = rowsOf<Pick<RowOf<typeof routingConfigs>, 'body'>>(answer)
  if (row === undefined) return undefined
  const { calibration, ...rest } = readJson(row.body) as StoredConfig
  // An older version counted every outcome as it was heard, and did not say so.
  const asHeard: Partial<Calibration> = { feedbackDelayMs: 0 }
  return { ...rest, calibration: { ...asHeard, ...calibration } }
}
