import { Hono } from 'hono'
import { jsonBody, sameRecord } from '../../shared/http/validate.ts'
import {
  type Agent,
  type AgentCreated,
  type AgentVersionWithManifest,
  agentCreate,
  agentPatch,
  versionCreate,
} from '../../shared/wire/runtime/agent.ts'
import { emptyBody, pageQuery } from '../../shared/wire/runtime/conventions.ts'
import { agentListQuery } from '../../shared/wire/runtime/endpoints/agents.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { RuntimeHttpEnv } from '../http/http-env.ts'
import type { Idempotent } from '../http/idempotent.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import type { Publisher } from '../secrets/manifest-check.ts'
import { type AgentRow, toAgentItem, toAgentVersion, type VersionRow } from './agent.ts'
import { isolationItems, type NodeBackends } from './isolation.ts'
import { checkOutputSchema } from './output-schema.ts'
import { EMBEDDED_POOL, POOL_LABEL } from './pool-label.ts'
import type { AgentStore, Saved } from './store.ts'
import { hasTexts } from './texts.ts'
import { warningsOf } from './warnings.ts'

export interface AgentsDeps {
  agents: AgentStore
  idempotent: Idempotent
  /** Ids of the connectors that a tenant has installed. */
  installedConnectors: (tenantId: string) => Promise<ReadonlySet<string>>
  /** The nodes that a tenant's runs may go to, with the backends that passed their self-tests. */
  backendsOf: (tenantId: string) => Promise<readonly NodeBackends[]>
  /** The version with its prompt and files; throws `node_offline` where only nodes that are away can read them. */
  unsealed: (version: VersionRow) => Promise<VersionRow>
  /** Refuses a manifest for which a hard limit of cost could not be held. */
  checkPriced: (tenantId: string, name: string, manifest: Manifest) => Promise<void>
  /** Refuses a manifest whose use of a secret the binding of that secret does not name. */
  checkSecrets: (agent: Publisher, manifest: Manifest) => Promise<void>
  maxBodyBytes: number
}

/** Agents, their versions, and where each isolation is to be had (docs/spec/runtime.md §3). */
export function agentsRoute(deps: AgentsDeps) {
  const { agents, idempotent, installedConnectors, backendsOf, unsealed, maxBodyBytes } = deps
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

  async function created({ agent, version }: Saved): Promise<AgentCreated> {
    const { manifest, number } = version
    const [connectors, nodes, known] = await Promise.all([
      installedConnectors(agent.tenantId),
      backendsOf(agent.tenantId),
      agents.known(
        agent.tenantId,
        manifest.subAgents.map(({ name }) => name),
      ),
    ])
    return {
      ...toAgentItem(agent),
      version: number,
      warnings: warningsOf(manifest, { connectors, agents: known, nodes, unsealedFor: unsealedFor(agent, version) }),
    }
  }

  return new Hono<RuntimeHttpEnv>()
    .get('/v1/agents', async c => {
      const query = readQuery(c, agentListQuery)
      const page = pageOf(c, query)
      const rows = await agents.list(c.get('principal').tenantId, page, readLabel(query.label))
      return c.json(page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(toAgentItem))
    })
    .post(
      '/v1/agents',
      jsonBody(agentCreate, maxBodyBytes),
      idempotent({
        async again(c, versionId) {
          const version = await agents.getVersion(versionId)
          if (version === undefined) throw notFound('agent version', versionId)
          const agent = await find(version.tenantId, version.agentName)
          // Deleted since, and its name given to another.
          if (agent.id !== version.agentId) throw notFound('agent', agent.name)
          return c.json(await created({ agent, version }), 201)
        },
      }),
      async c => {
        const { tenantId, keyId } = c.get('principal')
        const given = c.req.valid('json')
        await sameRecord(given, async () => {
          const known = await agents.getByName(tenantId, given.name)
          return known ? toAgentItem(known) : {}
        })
        if (given.manifest) {
          checkOutputSchema(given.manifest)
          await deps.checkPriced(tenantId, given.name, given.manifest)
          await deps.checkSecrets({ tenantId, name: given.name, labels: given.labels }, given.manifest)
        }
        const by = { createdBy: keyId, idempotency: c.get('idempotency') }
        return c.json(await created(await agents.save(tenantId, given, by)), 201)
      },
    )
    .get('/v1/agents/:name', async c => {
      const name = c.req.param('name')
      return c.json(await whole({ tenantId: c.get('principal').tenantId, name }))
    })
    .patch('/v1/agents/:name', jsonBody(agentPatch, maxBodyBytes), async c => {
      const agent = await find(c.get('principal').tenantId, c.req.param('name'))
      const given = c.req.valid('json')
      await sameRecord(given, () => whole(agent))
      const changed = await agents.update(agent, given)
      if (changed === undefined) throw notFound('agent', agent.name)
      return c.json(toAgentItem(changed))
    })
    .delete('/v1/agents/:name', async c => {
      const agent = await find(c.get('principal').tenantId, c.req.param('name'))
      if (!(await agents.remove(agent))) throw notFound('agent', agent.name)
      return c.body(null, 204)
    })
    .get('/v1/agents/:name/versions', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const agent = await find(c.get('principal').tenantId, c.req.param('name'))
      const rows = await agents.versions(agent, page)
      const position = ({ createdMs, versionId }: Omit<VersionRow, 'manifest'>) => ({ at: createdMs, id: versionId })
      return c.json(page.cut(rows, position).map(version => toAgentVersion(version, agent.currentVersionId)))
    })
    .post('/v1/agents/:name/versions', jsonBody(versionCreate, maxBodyBytes), async c => {
      const { tenantId, keyId } = c.get('principal')
      const name = c.req.param('name')
      const given = c.req.valid('json')
      checkOutputSchema(given.manifest)
      await deps.checkPriced(tenantId, name, given.manifest)
      await deps.checkSecrets({ tenantId, name }, given.manifest)
      const saved = await agents.publish(tenantId, name, given, { createdBy: keyId })
      if (saved === undefined) throw notFound('agent', name)
      // Equal to what was given, also where it was published before and is sealed.
      const version = { ...saved.version, manifest: given.manifest }
      return c.json(withManifest({ ...saved, version }), 201)
    })
    .get('/v1/agents/:name/versions/:versionId', async c => {
      const agent = await find(c.get('principal').tenantId, c.req.param('name'))
      const version = await unsealed(await findVersion(agent, c.req.param('versionId')))
      return c.json(withManifest({ agent, version }))
    })
    .post('/v1/agents/:name/versions/:versionId/promote', jsonBody(emptyBody, maxBodyBytes), async c => {
      const agent = await find(c.get('principal').tenantId, c.req.param('name'))
      const promoted = await agents.promote(agent, await findVersion(agent, c.req.param('versionId')))
      if (promoted === undefined) throw notFound('agent', agent.name)
      return c.json(toAgentItem(promoted))
    })
    .get('/v1/isolation', async c => c.json(isolationItems(await backendsOf(c.get('principal').tenantId))))
}

function withManifest({ agent, version }: Saved): AgentVersionWithManifest {
  const { agentId, manifest } = version
  return { ...toAgentVersion(version, agent.currentVersionId), agentId, manifest }
}

function unsealedFor({ labels }: AgentRow, { manifest, sealed }: VersionRow): string | undefined {
  const pool = labels[POOL_LABEL]
  return sealed === undefined && pool !== EMBEDDED_POOL && hasTexts(manifest) ? pool : undefined
}

function readLabel(label: string | undefined): { key: string; value: string } | undefined {
  if (label === undefined) return undefined
  const colon = label.indexOf(':')
  return { key: label.slice(0, colon), value: label.slice(colon + 1) }
}
