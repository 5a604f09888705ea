import { ApiError } from '../../../shared/http/api-error.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import { isTerminal } from '../../../shared/wire/runtime/run.ts'
import type { SessionMessage } from '../../../shared/wire/runtime/session.ts'
import type { StepRequest } from '../../../shared/wire/runtime/step-request.ts'
import type { ManifestTexts, SealedTexts } from '../../agents/texts.ts'
import { type JournalEntry, readEvent } from '../../execution/journal/event.ts'
import type { RequestsOfSteps } from '../../runs/step-requests.ts'
import { finishOf, type TurnEnd } from '../../sessions/session.ts'
import type { ReachableNode, ReachableNodes } from '../peers/reachable-nodes.ts'
import type { ReadAsked } from '../registry/node-link.ts'
import type { NodeStore } from '../registry/store.ts'
import { type RemoteApproval, type RemoteEventText, type RemoteRunData, readEventLines } from '../sealed-payloads.ts'
import { fallbackNode } from './fallback-node.ts'
import type { RemoteRun, RunPlace } from './remote-run.ts'

const decoder = new TextDecoder()
const MOST_EVENTS = 500

export const offline = (what: string): ApiError<'node_offline'> =>
  new ApiError('node_offline', `${what} is kept by a node that is away or does not answer: try again when it is back`)

export type RemoteReads = ReturnType<typeof remoteReads>

/** What only nodes have, asked of them each time and kept nowhere here. */
export function remoteReads(reachableNodes: ReachableNodes, nodes: Pick<NodeStore, 'sharing'>) {
  async function ask<T>(nodeId: string | undefined, asked: ReadAsked): Promise<T | undefined> {
    return read<T>(nodeId === undefined ? undefined : await fallbackNode(reachableNodes, nodes, nodeId), asked)
  }

  async function read<T>(node: ReachableNode | undefined, asked: ReadAsked): Promise<T | undefined> {
    const answer = await node?.read(asked)
    if (answer === undefined || answer.status !== 200) return undefined
    return readJson(decoder.decode(answer.body)) as T
  }

  async function eventTexts(nodeId: string, asked: ReadAsked): Promise<RemoteEventText[] | undefined> {
    const answer = await (await fallbackNode(reachableNodes, nodes, nodeId))?.read(asked)
    if (answer === undefined || answer.status !== 200) return undefined
    const text = decoder.decode(answer.body)
    return readEventLines(text) ?? (readJson(text) as RemoteEventText[])
  }

  return {
    /** Input, output and the words of an error, by run; undefined: the node is away. */
    async of(nodeId: string, ids: readonly string[]): Promise<Map<string, RemoteRunData> | undefined> {
      const found = await ask<RemoteRunData[]>(nodeId, { kind: 'data', id: ids.join(',') })
      return found && new Map(found.map(one => [one.id, one]))
    },

    async events({ id, nodeId, state }: RunPlace, fromSeq: number, most: number): Promise<JournalEntry[]> {
      if (state === 'queued' || nodeId === undefined) return []
      const limit = Math.min(most, MOST_EVENTS)
      const found: JournalEntry[] = []
      // Its pages may be shorter than the caller's, who takes a short page for the last one.
      for (let from = fromSeq; found.length < most; from += limit) {
        const page = await eventTexts(nodeId, { kind: 'events', id, from, limit, lines: true })
        if (page === undefined) throw offline(`the journal of run ${id}`)
        found.push(...page.map(({ body, hash }) => readEvent(body, hash)))
        if (page.length < limit) break
      }
      return found.slice(0, most)
    },

    /** An output that stands beside a journal; undefined: there is none of that digest. */
    async blob({ id, nodeId, state }: RunPlace, sha256: string): Promise<Uint8Array | undefined> {
      if (state === 'queued' || nodeId === undefined) return undefined
      const answer = await (await fallbackNode(reachableNodes, nodes, nodeId))?.read({
        kind: 'blob',
        id: `${id}/${sha256}`,
      })
      if (answer === undefined) throw offline(`the journal of run ${id}`)
      return answer.status === 200 ? answer.body : undefined
    },

    /** What a model step sent and got, as its node rebuilds it; undefined: there is no such step. */
    async request({ id, nodeId, state }: RunPlace, stepId: string, before = 0): Promise<StepRequest | undefined> {
      if (state === 'queued' || nodeId === undefined) return undefined
      const node = await fallbackNode(reachableNodes, nodes, nodeId)
      const answer = await node?.read({ kind: 'request', id: `${id}/${stepId}`, from: before })
      if (answer === undefined) throw offline(`the journal of run ${id}`)
      if (answer.status === 404) return undefined
      const said = readJson(decoder.decode(answer.body)) as StepRequest | { error: string }
      if ('error' in said) throw new ApiError('validation_failed', said.error)
      return said
    },

    async approvals(nodeId: string, ids: readonly string[]): Promise<Map<string, RemoteApproval> | undefined> {
      const found = await ask<RemoteApproval[]>(nodeId, { kind: 'approvals', id: ids.join(',') })
      return found && new Map(found.map(one => [one.id, one]))
    },

    /** How these turns ended, as their node has it. */
    async turns(nodeId: string, ids: readonly string[]): Promise<Map<string, TurnEnd> | undefined> {
      const found = await ask<TurnEnd[]>(nodeId, { kind: 'turns', id: ids.join(',') })
      return found && new Map(found.map(end => [end.data.turnId, end]))
    },

    async messages(nodeId: string, sessionId: string): Promise<SessionMessage[] | undefined> {
      return ask<SessionMessage[]>(nodeId, { kind: 'messages', id: sessionId })
    },

    /** What a version of an agent says that only the nodes of its pool can read. */
    async texts(tenantId: string, versionId: string, { pool, box }: SealedTexts): Promise<ManifestTexts> {
      for (const node of await reachableNodes.of(tenantId, pool)) {
        const found = await read<ManifestTexts>(node, { kind: 'texts', id: versionId, box })
        if (found) return found
      }
      throw offline(`the prompt of agent version ${versionId}, sealed to pool ${pool},`)
    },

    /** The pool's private key, sealed by a node that has it to one that has not. */
    async poolKey(tenantId: string, pool: string, boxKeyHex: string): Promise<Uint8Array | undefined> {
      for (const link of await reachableNodes.of(tenantId, pool)) {
        const answer = await link.read({ kind: 'pool-key', id: boxKeyHex })
        if (answer?.status === 200) return answer.body
      }
      return undefined
    },
  }
}

/** What model steps sent, where some of the runs are on nodes: their node rebuilds it, and nothing of it stays here. */
export function remoteRequests(
  own: RequestsOfSteps,
  data: Pick<RemoteReads, 'request'>,
  remoteRunOf: (id: string) => Promise<RemoteRun | undefined>,
): RequestsOfSteps {
  return {
    async of(runId, stepId, before) {
      const remote = await remoteRunOf(runId)
      return remote ? data.request(remote, stepId, before) : own.of(runId, stepId, before)
    },
  }
}

/** The record of a run with what its node says; a run that was ended here shows no output that came later. */
export function withData(run: Run, remote: RemoteRun, data: RemoteRunData | undefined): Run {
  const message = remote.errorMessage ?? data?.errorMessage
  const said = finishOf(run.status, run.error?.code) !== undefined
  const output = isTerminal(run.status) ? (said ? data?.output : {}) : undefined
  return {
    ...run,
    ...(data?.input && { input: data.input }),
    ...(output && { output }),
    ...(run.error && { error: { ...run.error, message: message ?? run.error.message } }),
    ...(data === undefined && { dataAvailable: false }),
  }
}
