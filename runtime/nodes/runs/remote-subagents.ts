import { ApiError } from '../../../shared/http/api-error.ts'
import { toHex } from '../../../shared/sign/bytes.ts'
import type { Sha256 } from '../../../shared/sign/sha256.ts'
import type { Db } from '../../../shared/sql/db.ts'
import type { ChildAsk } from '../../../shared/tunnel/gateway.gen.ts'
import type { VersionRow } from '../../agents/agent.ts'
import { satisfies } from '../../agents/isolation.ts'
import { genesis } from '../../execution/journal/event.ts'
import { MAX_DEPTH } from '../../execution/tools/sub-agent-tool.ts'
import type { Admit } from '../../runs/service.ts'
import type { RunStore } from '../../runs/store.ts'
import type { NodeLinks } from '../registry/node-link.ts'
import type { NodeStore } from '../registry/store.ts'
import { refusedFrame } from './end-remote-run.ts'
import type { RemoteRun } from './remote-run.ts'
import type { RemoteRunStore } from './remote-run-store.ts'

export interface RemoteSubagentsDeps {
  db: Db
  remote: RemoteRunStore
  nodes: Pick<NodeStore, 'frame'>
  links: NodeLinks
  runs: () => Pick<RunStore, 'create'>
  admit: Admit
  versionOf: (versionId: string) => Promise<VersionRow | undefined>
  currentByName: (tenantId: string, name: string) => Promise<VersionRow | undefined>
  now: () => Date
  dayOf: (ms: number) => string
  dispatchMs: number
  sha256: Sha256
}

/** More is no agent's input. */
const MOST_CHARACTERS = 16 * 1024 * 1024

/**
 * Makes the run that a run on a node asked for: under its agent's budget, one level deeper, for the same node. A refusal is reported
 * to the node, whose run goes on without it. Asked again, it is one run.
 */
export function remoteSubagents(deps: RemoteSubagentsDeps) {
  const { db, remote, nodes, links, now } = deps

  async function refuse(parent: RemoteRun, childId: string, code: string, message: string): Promise<void> {
    if (parent.nodeId === undefined) return
    await db.write([nodes.frame(parent.nodeId, await refusedFrame(parent.id, childId, { code, message }))])
    links.get(parent.nodeId)?.wake()
  }

  /** Asked before, or a run that is none of this node's: the node chooses the number. */
  async function isTaken(id: string): Promise<boolean> {
    return (await db.execute({ sql: 'select 1 from runs where id = ?', args: [id] })).rows.length > 0
  }

  /** The version that is called, or why it cannot be. */
  async function called(parent: RemoteRun, name: string): Promise<VersionRow | { code: string; message: string }> {
    const code = 'subagent_failed'
    if (parent.depth >= MAX_DEPTH) return { code, message: `agents may be nested ${MAX_DEPTH} deep` }
    const caller = await deps.versionOf(parent.versionId)
    if (!caller?.manifest.subAgents.some(one => one.name === name)) {
      return { code, message: `${name} is not an agent that ${parent.agentName} may call` }
    }
    const version = await deps.currentByName(parent.tenantId, name)
    if (version === undefined) return { code, message: `there is no agent called ${name}` }
    if (version.sealed && version.sealed.pool !== parent.pool) {
      const message = `the prompt of agent ${name} is sealed to pool ${version.sealed.pool}, and its parent runs on ${parent.pool}`
      return { code: 'isolation_unavailable', message }
    }
    const { isolation } = version.manifest
    if (!satisfies(isolation, links.get(parent.nodeId ?? '')?.backends ?? [])) {
      const message = `${name} needs isolation ${isolation}, which the node of its parent does not offer`
      return { code: 'isolation_unavailable', message }
    }
    return version
  }

  return async (parent: RemoteRun, { childId: id, agentName, inputSealed, inputHash, inputLength }: ChildAsk) => {
    if (!/^[0-9a-f-]{36}$/.test(id) || inputHash.length !== 32 || (await isTaken(id))) return
    const version = await called(parent, agentName)
    if ('code' in version) return refuse(parent, id, version.code, version.message)
    const { tenantId, pool, nodeId } = parent
    const { agentId, versionId, manifest } = version
    const createdMs = now().getTime()
    const row = remote.insert({
      id,
      tenantId,
      pool,
      pinned: nodeId,
      isolation: manifest.isolation,
      createdMs,
      inputSealed,
      dispatchByMs: createdMs + deps.dispatchMs,
      inputHash: toHex(inputHash),
      genesis: genesis(id, deps.sha256).hash,
    })
    // Only its length counts for the expected cost of the run; its content cannot be read here.
    const input = ' '.repeat(Math.min(Number(inputLength), MOST_CHARACTERS))
    const candidate = { tenantId, agentId, agentName: version.agentName, versionId, manifest, input }
    try {
      await deps.admit(candidate, id, ({ statements, exceeded }) =>
        deps.runs().create({
          id,
          tenantId,
          agentName: version.agentName,
          agentId,
          versionId,
          createdMs,
          labels: '{}',
          input: '{}',
          day: deps.dayOf(createdMs),
          isolation: manifest.isolation,
          budgetExceeded: exceeded,
          elsewhere: {},
          trigger: { kind: 'subagent', ref: parent.id },
          parentRunId: parent.id,
          depth: parent.depth + 1,
          also: [...statements, ...row],
        }),
      )
    } catch (error) {
      if (!(error instanceof ApiError) || error.code === 'store_unavailable') throw error
      await refuse(parent, id, error.code, error.message)
    }
  }
}
