import { invalidMember } from '../../shared/http/api-error.ts'
import { sameRecord } from '../../shared/http/validate.ts'
import type { Agent, AgentCreated, AgentVersionWithManifest } from '../../shared/wire/runtime/agent.ts'
import { connectorRef } from '../../shared/wire/runtime/catalog.ts'
import { readLabel } from '../../shared/wire/runtime/conventions.ts'
import { agentEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/agents.ts'
import type { Backend } from '../../shared/wire/runtime/isolation.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { needsSandbox } from '../execution/sandbox/placement.ts'
import { withoutKey } from '../http/idempotent.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { schemaProblem } from '../json-schema/schema-check.ts'
import type { Publisher } from '../secrets/manifest-check.ts'
import { type AgentRow, toAgentItem, toAgentVersion, type VersionRow } from './agent.ts'
import { isolationItems, type NodeBackends, satisfies } from './isolation.ts'
import { EMBEDDED_POOL, POOL_LABEL } from './pool-label.ts'
import type { AgentStore, Saved } from './store.ts'
import { hasTexts } from './texts.ts'

export interface AgentsDeps {
  agents: AgentStore
  /** Ids of the connectors that a tenant has installed. */
  installedConnectors: (tenantId: string) => Promise<ReadonlySet<string>>
  /** The nodes that a tenant's runs may go to, with the backends that passed their self-tests. */
  backendsOf: (tenantId: string) => Promise<readonly NodeBackends[]>
  /** Lets the embedded node try what it otherwise tries when a run first asks for it. */
  tryWasm: () => Promise<unknown>
  /** The version with its prompt and files; throws `node_offline` where only nodes that are away can read them. */
  unsealed: (version: VersionRow) => Promise<VersionRow>
  /** Refuses a manifest for which a hard limit of cost could not be held. */
  checkPriced: (tenantId: string, name: string, manifest: Manifest) => Promise<void>
  /** Why the runs of an agent that are executed here may not call an address; undefined where they may. */
  outboundProblem: (url: URL) => Promise<string | undefined>
  /** Whether the budget of an agent was made for one that had its name before. */
  hasKeptBudget: (agent: AgentRow) => Promise<boolean>
  /** Refuses a manifest whose use of a secret the binding of that secret does not name. */
  checkSecrets: (agent: Publisher, manifest: Manifest) => Promise<void>
}

/** Agents as answers show them, and what is checked before one is saved. */
function agentReads(deps: AgentsDeps) {
  const { agents, installedConnectors, backendsOf, unsealed } = deps
  async function find(tenantId: string, name: string): Promise<AgentRow> {
    const agent = await agents.getByName(tenantId, name)
    if (agent === undefined) throw notFound('agent', name)
    return agent
  }

  async function whole({ tenantId, name }: Pick<AgentRow, 'tenantId' | 'name'>): Promise<Agent> {
    const found = await agents.getCurrent(tenantId, name)
    if (found === undefined) throw notFound('agent', name)
    const { manifest } = await unsealed(found.version)
    return { ...toAgentItem(found.agent), manifest }
  }

  async function findVersion(agent: AgentRow, versionId: string): Promise<VersionRow> {
    const version = own(agent, await agents.getVersion(versionId), 'agent version', versionId)
    if (version.agentId !== agent.id) throw notFound('agent version', versionId)
    return version
  }

  async function warnings({ agent, version }: Saved): Promise<string[]> {
    const { manifest, number } = version
    // Nothing of it is loaded before something asks for it, and a warning that it is not there would be wrong.
    if (manifest.isolation === 'wasm') await deps.tryWasm()
    const [connectors, nodes, keptBudget, unreached, known] = await Promise.all([
      installedConnectors(agent.tenantId),
      backendsOf(agent.tenantId),
      number === 1 && deps.hasKeptBudget(agent),
      unreachedServers(agent, manifest),
      agents.known(
        agent.tenantId,
        manifest.subAgents.map(({ name }) => name),
      ),
    ])
    const around = { connectors, agents: known, nodes, keptBudget, unsealedFor: unsealedFor(agent, version) }
    return [...warningsOf(manifest, around), ...unreached]
  }

  /** What the nodes of a pool may call is decided by their operator, and not known here. */
  async function unreachedServers({ labels }: AgentRow, { mcpServers }: Manifest): Promise<string[]> {
    if ((labels[POOL_LABEL] ?? EMBEDDED_POOL) !== EMBEDDED_POOL) return []
    const found = await Promise.all(
      mcpServers.map(async ({ name, url }) => {
        const problem = url === undefined ? undefined : await deps.outboundProblem(new URL(url))
        return problem === undefined ? [] : [`MCP server ${name} cannot be called: ${problem}`]
      }),
    )
    return found.flat()
  }

  const created = async (saved: Saved): Promise<AgentCreated> => ({
    ...toAgentItem(saved.agent),
    version: saved.version.number,
    warnings: await warnings(saved),
  })

  async function check(agent: Publisher, manifest: Manifest): Promise<void> {
    checkSchemas(manifest)
    await deps.checkPriced(agent.tenantId, agent.name, manifest)
    await deps.checkSecrets(agent, manifest)
  }

  return { find, whole, findVersion, created, check, warnings }
}

/** Agents, their versions, and where each isolation is to be had (docs/spec/runtime.md §3). */
export function agentOperations(deps: AgentsDeps): Operation[] {
  const { agents, backendsOf, unsealed } = deps
  const { find, whole, findVersion, created, check, warnings } = agentReads(deps)

  return [
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const { label } = call.query
      const rows = await agents.list(call.principal.tenantId, page, label === undefined ? undefined : readLabel(label))
      return page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(toAgentItem)
    }),
    keyedOperation(
      endpoints.create,
      async ({ principal: { tenantId, keyId }, body, idempotency }) => {
        await sameRecord(body, async () => {
          const known = await agents.getByName(tenantId, body.name)
          return known ? toAgentItem(known) : {}
        })
        if (body.manifest) await check({ tenantId, name: body.name, labels: body.labels }, body.manifest)
        return created(await agents.save(tenantId, body, { createdBy: keyId, idempotency }))
      },
      {
        async again(_, versionId) {
          const version = await agents.getVersion(versionId)
          if (version === undefined) throw notFound('agent version', versionId)
          const agent = await find(version.tenantId, version.agentName)
          // Deleted since, and its name given to another.
          if (agent.id !== version.agentId) throw notFound('agent', agent.name)
          return created({ agent, version })
        },
      },
    ),
    operation(endpoints.get, ({ principal, params }) => whole({ tenantId: principal.tenantId, name: params.name })),
    operation(endpoints.update, async ({ principal, params, body }) => {
      const agent = await find(principal.tenantId, params.name)
      await sameRecord(body, () => whole(agent))
      const changed = await agents.update(agent, body)
      if (changed === undefined) throw notFound('agent', agent.name)
      return toAgentItem(changed)
    }),
    operation(endpoints.remove, async ({ principal, params }) => {
      const agent = await find(principal.tenantId, params.name)
      if (!(await agents.remove(agent))) throw notFound('agent', agent.name)
    }),
    operation(endpoints.versions, async call => {
      const page = pageOf(call)
      const agent = await find(call.principal.tenantId, call.params.name)
      const rows = await agents.versions(agent, page)
      const position = ({ createdMs, versionId }: Omit<VersionRow, 'manifest'>) => ({ at: createdMs, id: versionId })
      return page.cut(rows, position).map(version => toAgentVersion(version, agent.currentVersionId))
    }),
    operation(endpoints.publish, async ({ principal: { tenantId, keyId }, params: { name }, body }) => {
      await check({ tenantId, name }, body.manifest)
      const saved = await agents.publish(tenantId, name, body, { createdBy: keyId, idempotency: withoutKey })
      if (saved === undefined) throw notFound('agent', name)
      // Equal to what was published, also where that was published before and is sealed.
      const whole = { ...saved, version: { ...saved.version, manifest: body.manifest } }
      return { ...withManifest(whole), warnings: await warnings(whole) }
    }),
    operation(endpoints.version, async ({ principal, params }) => {
      const agent = await find(principal.tenantId, params.name)
      const version = await unsealed(await findVersion(agent, params.versionId))
      return withManifest({ agent, version })
    }),
    operation(endpoints.promote, async ({ principal, params }) => {
      const agent = await find(principal.tenantId, params.name)
      const promoted = await agents.promote(agent, await findVersion(agent, params.versionId))
      if (promoted === undefined) throw notFound('agent', agent.name)
      return toAgentItem(promoted)
    }),
    operation(endpoints.isolation, async ({ principal }) => isolationItems(await backendsOf(principal.tenantId))),
  ]
}

function withManifest({ agent, version }: Saved): AgentVersionWithManifest {
  const { agentId, manifest } = version
  return { ...toAgentVersion(version, agent.currentVersionId), agentId, manifest }
}

function unsealedFor({ labels }: AgentRow, { manifest, sealed }: VersionRow): string | undefined {
  const pool = labels[POOL_LABEL]
  return sealed === undefined && pool !== EMBEDDED_POOL && hasTexts(manifest) ? pool : undefined
}

/** Refuses a manifest whose inputs or answers could not be held against its schemas. */
function checkSchemas(manifest: Manifest): void {
  for (const member of ['inputSchema', 'outputSchema'] as const) {
    const schema = manifest[member]
    const message = schema && schemaProblem(schema)
    if (message === undefined) continue
    const path = `manifest.${member}`
    throw invalidMember(path, message)
  }
}

interface Surroundings {
  /** Ids of the connectors that the tenant has installed. */
  connectors: ReadonlySet<string>
  /** Names of the tenant's agents, the one that is being saved among them. */
  agents: ReadonlySet<string>
  nodes: readonly { backends: readonly Backend[] }[]
  /** The pool that its texts should have been sealed to, and were not. */
  unsealedFor: string | undefined
  /** The agent is new, and has a budget from before. */
  keptBudget: boolean
}

/** What the manifest names and the tenant does not have yet. Each may come before the first run, so none is an error. */
function warningsOf(
  manifest: Manifest,
  { connectors, agents, nodes, unsealedFor, keptBudget }: Surroundings,
): string[] {
  const named = manifest.connectors.flatMap(entry => connectorRef(entry)?.connectorId ?? [])
  const missing = [...new Set(named)].filter(id => !connectors.has(id))
  const away = manifest.subAgents.map(({ name }) => name).filter(name => !agents.has(name))
  const { isolation } = manifest
  return [
    ...missing.map(id => `connector ${id} is not installed`),
    ...away.map(name => `sub-agent ${name} does not exist`),
    ...(nodes.some(({ backends }) => satisfies(isolation, backends))
      ? []
      : [`no node offers isolation ${isolation} yet: runs end isolation_unavailable unless one does when they start`]),
    ...(isolation === 'shared' &&
    (needsSandbox(manifest) || manifest.mcpServers.some(({ command }) => command !== undefined)) &&
    !nodes.some(({ backends }) => satisfies('microvm', backends))
      ? [
          'what it runs in a sandbox needs a microVM under isolation shared, and no node offers one: its runs end isolation_unavailable',
        ]
      : []),
    ...(keptBudget
      ? ['the budget of the agent that had this name before applies, with what was used of it today']
      : []),
    ...(unsealedFor === undefined
      ? []
      : [
          `pool ${unsealedFor} had no enrolled node, so its prompt and files are readable here: publish it again when it has`,
        ]),
  ]
}
