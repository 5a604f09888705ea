import { isKnownFault } from '../../shared/host/known-fault.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { ApiError } from '../../shared/http/api-error.ts'
import type { Log } from '../../shared/log/log.ts'
import { loadBuiltinPrices } from '../../shared/prices/builtin.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { systemClock } from '../../shared/time/clock.ts'
import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import type { FeedbackRequest, FeedbackResult } from '../../shared/wire/router/feedback.ts'
import type { McpInput, Rehearsal } from '../../shared/wire/router/mcp.ts'
import { auditReads } from '../audit/reads.ts'
import { describeCalibration } from '../calibrate/calibration-reads.ts'
import { type EntryRow, entriesOf, toEntry } from '../calibrate/calibration-store.ts'
import { lastConfig } from '../calibrate/route-cache.ts'
import { calibrationTable } from '../config/learning-tables.ts'
import { loadConfig } from '../config/load-config.ts'
import { formatProblem } from '../config/problem.ts'
import { resolveCalibration } from '../config/resolve-settings.ts'
import type { RoutingConfig } from '../config/routing-config.ts'
import { keepFeedback } from '../feedback/store-feedback.ts'
import { auditTools, callTool, type ToolResult } from '../mcp/audit-tools.ts'
import { readResource } from '../mcp/resources.ts'
import { verifyReceipts } from '../mcp/verify-receipts.ts'
import type { Estimate } from '../ope/estimate.ts'
import { type PolicyTarget, rehearse } from '../ope/rehearse.ts'
import { describeModes } from '../policy/knobs.ts'
import { onePlace, openPlaced, openStoreToWrite } from './open-store.ts'
import { verifiedInThreads } from './verify-threads.ts'

export interface AuditSessionOptions {
  vars: Readonly<Record<string, string | undefined>>
  /** Address of the store; default ROUTER_DB. */
  address: string | undefined
  tenant: string
  config: () => Promise<RoutingConfig>
  log: Log
}

/**
 * What an audit client asks, answered from the store of a router that may be running or not. The store is open for reading; only the first
 * reported outcome opens it for writing, with the same code that HTTP reports go through.
 */
export async function auditSession({ vars, address, tenant, config, log }: AuditSessionOptions) {
  const { address: place } = await onePlace(vars, address, tenant)
  const db = await openPlaced(vars, place)
  const reads = auditReads(db)
  const calibration = () => storedCalibration(db, tenant)
  const reports = reportedTo(() => openStoreToWrite(vars, place), { tenant, log })
  const tools = auditTools({
    tenant,
    reads,
    calibration,
    rehearse: input => rehearsePolicy(db, input, { vars, tenant }),
    verify: input =>
      verifyReceipts(input, {
        db,
        tenant,
        sha256: nativeSha256,
        ...(db.kind === 'file' && { wholeChain: verifiedInThreads(db, { address: place, tenant }) }),
      }),
    modes: async () => describeModes((await config()).learning),
    submit: reports.submit,
  })

  /** A copy that follows a server answers as of now; while the server is away, as of when it was last there. */
  async function current(): Promise<void> {
    await db.sync().catch((error: unknown) => log.warn('the copy could not be brought up to date', { error }))
  }

  return {
    async call(name: string, input: unknown): Promise<ToolResult> {
      await current()
      return callTool(tools, name, input, log)
    },
    async read(uri: string) {
      await current()
      return readResource(uri, { tenant, reads, calibration, config, env: vars })
    },
    async close(): Promise<void> {
      await reports.close()
      db.close()
    },
  }
}

/** Feedback into a store that is opened at the first report. One that cannot be written refuses each report and says why. */
function reportedTo(open: () => Promise<Db>, { tenant, log }: { tenant: string; log: Log }) {
  let opening: ReturnType<typeof begin> | undefined

  async function begin() {
    const db = await open()
    try {
      const defaults = resolveCalibration(calibrationTable.parse({}))
      let settings = defaults
      const { submit, close } = await keepFeedback({
        db,
        log,
        clock: systemClock,
        sha256: nativeSha256,
        settings: () => settings,
        find: async (id, known) => (await auditReads(db).find(id, known))?.trace,
      })
      return {
        async submit(report: FeedbackRequest): Promise<FeedbackResult> {
          // As the router that used the store last: with other settings the history of a threshold would begin anew.
          settings = (await lastConfig(db))?.calibration ?? defaults
          return submit(report, tenant)
        },
        async close() {
          await close()
          db.close()
        },
      }
    } catch (error) {
      db.close()
      throw error
    }
  }

  async function writing() {
    opening ??= begin()
    try {
      return await opening
    } catch (cause) {
      opening = undefined
      if (!isKnownFault(cause)) throw cause
      throw new ApiError('forbidden', `An outcome cannot be reported here. ${cause.message}`, { cause })
    }
  }

  return {
    submit: async (report: FeedbackRequest) => (await writing()).submit(report),
    close: async () => (await opening?.catch(() => undefined))?.close(),
  }
}

interface RehearsePlace {
  vars: Readonly<Record<string, string | undefined>>
  tenant: string
}

/** What another policy would have cost or failed, from the receipts of one tenant. */
async function rehearsePolicy(
  db: Db,
  { policy_toml, start_rung = 0, metric }: McpInput<'rehearse_policy'>,
  { vars, tenant }: RehearsePlace,
): Promise<Rehearsal> {
  const target = policy_toml === undefined ? { startRung: start_rung } : await policyOf(policy_toml, vars)
  const span = { tenant, since: undefined, until: undefined }
  const [found] = await rehearse(db, { target, metrics: [metric], span })
  if (found === undefined) throw new Error(`nothing was estimated for ${metric}`)
  const { n, ess, coverage, warnings, direct } = found
  return {
    ips: orNothing(found.ips),
    snips: orNothing(found.snips),
    dr: orNothing(found.dr),
    ...(direct && { direct: orNothing(direct.rehearsed) }),
    ess,
    coverage,
    n,
    warnings,
  }
}

function orNothing(estimate: Estimate | null): Rehearsal['ips'] {
  return estimate === null ? { value: null, ci: null } : { value: estimate.value, ci: [...estimate.ci] }
}

async function policyOf(text: string, vars: RehearsePlace['vars']): Promise<PolicyTarget> {
  const loaded = loadConfig(text, {
    file: 'policy_toml',
    env: vars,
    builtinPrices: await loadBuiltinPrices(),
    hostHasProcesses: true,
    readFile(name) {
      throw new Error(`a policy that is only rehearsed has no folder to read ${name} from: put the content in it`)
    },
  })
  if (loaded.ok) return { config: loaded.config }
  throw new ApiError('bad_request', loaded.problems.map(formatProblem).join('\n'))
}

/** Where the thresholds of one tenant stand, by the config that a router used last on this store. */
async function storedCalibration(db: Db, tenantId: string): Promise<CalibrationState[]> {
  const config = await lastConfig(db)
  if (config === undefined) return []
  const entries = rowsOf<EntryRow>(await db.execute(entriesOf(tenantId))).map(toEntry)
  const kept = new Map(entries.map(({ routeFp, kept }) => [routeFp, kept]))
  return config.routes.flatMap(({ fingerprint, serve_threshold, rungs, scores = true }, ix) => {
    const own = kept.get(fingerprint)
    // A route that only observes has no threshold; of what an older version kept, only a route with outcomes is known to have one.
    const decides = rungs === undefined ? own !== undefined : rungs > 0
    const route = { ix, serveThreshold: serve_threshold, scores }
    return decides ? [describeCalibration({ tenantId, route, kept: own, settings: config.calibration })] : []
  })
}
