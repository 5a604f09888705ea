import { openDb } from '../../../shared/host/open-libsql.ts'
import { uuidv7 } from '../../../shared/ids/uuid-v7.ts'
import { type Log, silentLog } from '../../../shared/log/log.ts'
import { createMetrics } from '../../../shared/metrics/metrics.ts'
import { canonicalize } from '../../../shared/sign/jcs.ts'
import { sha256 } from '../../../shared/sign/sha256.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import { type Clock, systemClock } from '../../../shared/time/clock.ts'
import { type ManifestInput, manifest as manifestSchema } from '../../../shared/wire/runtime/manifest.ts'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import { childRuns } from '../../runs/children.ts'
import { runStore } from '../../runs/store.ts'
import { runtimeSteps } from '../../schema/steps.ts'
import { clearRecords } from '../../vault/records.ts'
import { createEngine, type Engine } from '../engine.ts'
import { type EngineDeps, engineLimits } from '../engine-deps.ts'
import { engineMetrics } from '../engine-metrics.ts'
import { pinStore } from '../mcp/pin-store.ts'
import { demoModel } from '../models/demo.ts'
import type { AskModel, ModelAnswer, ModelRequest } from '../models/model.ts'
import { noSandboxes } from '../sandbox/sandboxes.ts'

export interface FixtureOptions
  extends Partial<
    Pick<
      EngineDeps,
      | 'egressDecided'
      | 'isGone'
      | 'limits'
      | 'owner'
      | 'children'
      | 'outbound'
      | 'connectorsOf'
      | 'sandboxes'
      | 'secretOf'
      | 'mcp'
    >
  > {
  url?: string
  manifest?: ManifestInput
  /** Further agents, by name. */
  agents?: Readonly<Record<string, ManifestInput>>
  contextTokens?: number
  ask?: AskModel
  clock?: Clock
  log?: Log
  /** Stands between the engine and its store. */
  wrap?: (db: Db) => Db
  open?: (url: string) => Promise<Db>
  /** As in a service: a run is taken by the transaction that makes it. Otherwise it waits until the test wakes the engine. */
  claimsNewRuns?: boolean
}

/** An engine on a real database, with one agent and a model that the test speaks for. */
export async function engineFixture({
  url = ':memory:',
  manifest = {},
  agents = {},
  contextTokens,
  ask,
  clock = systemClock,
  wrap = db => db,
  open = openDb,
  claimsNewRuns = false,
  ...rest
}: FixtureOptions = {}) {
  const opened = await open(url)
  const db = wrap(opened)
  await migrate(opened, 'runtime', runtimeSteps)
  const claims = { beside: () => engine.claimBeside(), wake: () => engine.wake() }
  const runs = runStore(db, clearRecords, claimsNewRuns ? claims : undefined)
  const manifests = new Map(
    Object.entries({ agent: manifest, ...agents }).map(([name, given]) => [name, manifestSchema.parse(given)]),
  )
  const manifestOf = async (version: string) => manifests.get(version) ?? manifestSchema.parse({})
  const metrics = createMetrics()
  const engine: Engine = createEngine({
    records: clearRecords,
    db,
    clock,
    sha256,
    newId: uuidv7,
    random: () => 0.5,
    owner: uuidv7(),
    nodeId: () => 'local',
    limits: engineLimits,
    log: silentLog(),
    metrics: engineMetrics(metrics),
    manifestOf,
    signReceipt: async () => undefined,
    turnOf: () => Promise.reject(new Error('this test has no sessions')),
    endEffect: async () => undefined,
    withinBudget: (_run, model) => model,
    lostCall: () => [],
    cutElsewhere: async () => undefined,
    dayOf: ms => new Date(ms).toISOString().slice(0, 10),
    models: {
      find: async () => (ask ? { id: 'test/model', ask, ...(contextTokens && { contextTokens }) } : demoModel()),
    },
    children: parent =>
      childRuns(
        {
          runs,
          cancel: id => engine.end(id, { code: 'cancelled' }),
          async findAgent(_tenant, name) {
            const found = manifests.get(name)
            return found && { agentId: name, versionId: name, manifest: found }
          },
          now: clock.now,
          dayOf: ms => new Date(ms).toISOString().slice(0, 10),
          admit: (_candidate, _id, create) => create({ statements: [], exceeded: false }),
        },
        parent,
      ),
    outbound: () => Promise.reject(new Error('this test calls nobody')),
    connectorsOf: async () => [],
    sandboxes: noSandboxes,
    egressDecided: async () => undefined,
    secretOf: async () => undefined,
    mcp: {
      fetch: () => Promise.reject(new Error('this test calls no MCP server')),
      pins: pinStore(db),
    },
    ...rest,
  })
  return {
    db,
    runs,
    engine,
    metrics,
    async create(
      input: Record<string, unknown>,
      more: { id?: string; agentName?: string; tenantId?: string } = {},
    ): Promise<string> {
      const id = more.id ?? uuidv7()
      await runs.create({
        id,
        tenantId: more.tenantId ?? 'default',
        agentName: more.agentName ?? 'agent',
        agentId: more.agentName ?? 'agent',
        versionId: more.agentName ?? 'agent',
        day: '2026-01-02',
        createdMs: clock.now().getTime(),
        input: canonicalize(input),
        labels: '{}',
        isolation: 'shared',
        trigger: { kind: 'api' },
      })
      return id
    },
    /** Resolves with the run once it has one of these statuses; reads the store, so it sees what a client would. */
    until: (id: string, statuses: readonly Run['status'][] = ['succeeded', 'failed', 'cancelled'], waitMs = 10_000) =>
      untilStatus(db, runs.get, id, statuses, waitMs),
    async close() {
      await engine.close(5000)
      await runs.close()
      await db.close()
    },
  }
}

async function untilStatus(
  db: Db,
  get: (id: string) => Promise<Run | undefined>,
  id: string,
  statuses: readonly Run['status'][],
  waitMs: number,
): Promise<Run> {
  const deadline = performance.now() + waitMs
  for (;;) {
    const run = await get(id)
    const free = await db.execute({ sql: 'select owner from runs where id = ?', args: [id] })
    if (run && statuses.includes(run.status) && free.rows[0]?.[0] === null) return run
    if (performance.now() > deadline) throw new Error(`run ${id} is ${run?.status}, expected ${statuses.join(' or ')}`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

/** An answer that ends the run, or one that calls tools. */
export function says(
  text: string,
  toolCalls: { name: string; arguments?: Record<string, unknown> }[] = [],
): ModelAnswer {
  return {
    text,
    stop: toolCalls.length > 0 ? 'tools' : 'end',
    provider: 'test',
    model: 'test/model',
    toolCalls: toolCalls.map((call, at) => ({ id: `c${at + 1}`, name: call.name, arguments: call.arguments ?? {} })),
    spent: { tokensIn: 10, tokensOut: 2, costNano: 1000 },
  }
}

/** A model that says one thing after the other, by turn: a repeated turn gets the same answer. */
export function script(answers: readonly ModelAnswer[], calls: ModelRequest[] = []): AskModel {
  return async request => {
    calls.push(request)
    const turn = request.messages.filter(message => message.role === 'assistant').length
    const answer = answers[turn]
    if (!answer) throw new Error(`nothing is scripted for turn ${turn + 1}`)
    return answer
  }
}
