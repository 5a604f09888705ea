import { ApiError } from '../../../shared/http/api-error.ts'
import { pageTurn } from '../../../shared/time/sleep.ts'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import { isTerminal } from '../../../shared/wire/runtime/run.ts'
import type { SessionMessage } from '../../../shared/wire/runtime/session.ts'
import type { StepRequest } from '../../../shared/wire/runtime/step-request.ts'
import type { ManifestTexts, SealedTexts } from '../../agents/texts.ts'
import type { JournalEntry } from '../../execution/journal/event.ts'
import type { RequestsOfSteps } from '../../runs/step-requests.ts'
import type { JournalPage } from '../../runs/store.ts'
import { finishOf, type TurnEnd } from '../../sessions/session.ts'
import type { ReachableNode, ReachableNodes } from '../peers/reachable-nodes.ts'
import type { NodeReadRequest } from '../registry/node-link.ts'
import type { NodeStore } from '../registry/store.ts'
import { type RemoteApproval, type RemoteRunData, readEventLines } from '../sealed-payloads.ts'
import { fallbackNode } from './fallback-node.ts'
import type { Answers } from './read-answer.ts'
import type { RemoteRun, RunPlace } from './remote-run.ts'

const decoder = new TextDecoder()
const MOST_EVENTS = 500
const AT_ONCE = 200_000

/** Only where a node is asked; an import costs as much as reading a short answer. */
let imported: Promise<typeof import('./read-answer.ts')> | undefined
const reading = () => (imported ??= import('./read-answer.ts'))

interface Entries {
  found: JournalEntry[]
  hasMore: boolean
}

type Kind = Extract<NodeReadRequest['kind'], keyof Answers>

export const offline = (what: string): ApiError<'node_offline'> =>
  new ApiError(
    'node_offline',
    `${what} is kept by a node that is away or does not answer: try again when it is back. If it never comes back, remove the node (DELETE /v1/nodes/{id}?force=true): then its runs end, and are shown without what it kept`,
  )

/** Why the journal of a run cannot be read: its node is away, or was removed and does not come back. */
async function lostJournal(
  nodes: Pick<NodeStore, 'get'>,
  nodeId: string,
  id: string,
): Promise<ApiError<'node_offline' | 'node_removed'>> {
  if (await nodes.get(nodeId)) return offline(`the journal of run ${id}`)
  return new ApiError(
    'node_removed',
    `the journal of run ${id} was kept by the node ${nodeId}, which was removed: it is lost, unless you have exported it; the run itself and its receipt are still here`,
  )
}

export type RemoteReads = ReturnType<typeof remoteReads>

/** What only nodes have, asked of them each time and kept nowhere here. */
export function remoteReads(reachableNodes: ReachableNodes, nodes: Pick<NodeStore, 'sharing' | 'get'>) {
  async function ask<K extends Kind>(nodeId: string, kind: K, id: string): Promise<Answers[K] | undefined> {
    return read(await fallbackNode(reachableNodes, nodes, nodeId), kind, { id })
  }

  /** A node that answers something else counts as one that is away. */
  async function read<K extends Kind>(
    node: ReachableNode | undefined,
    kind: K,
    asked: Omit<NodeReadRequest, 'kind'>,
  ): Promise<Answers[K] | undefined> {
    const answer = await node?.read({ ...asked, kind })
    if (answer === undefined || answer.status !== 200) return undefined
    const { readAnswer } = await reading()
    return readAnswer(kind, decoder.decode(answer.body))
  }

  return {
    ...remoteJournals(reachableNodes, nodes),

    /** Input, output and the words of an error, by run; undefined: the node is away. */
    async of(nodeId: string, ids: readonly string[]): Promise<Map<string, RemoteRunData> | undefined> {
      return ofThese(ids, await ask(nodeId, 'data', ids.join(',')))
    },

    /** An output that stands beside a journal; undefined: there is none of that digest. */
    async blob({ id, nodeId, state }: RunPlace, sha256: string): Promise<Uint8Array | undefined> {
      if (state === 'queued' || nodeId === undefined) return undefined
      const answer = await (await fallbackNode(reachableNodes, nodes, nodeId))?.read({
        kind: 'blob',
        id: `${id}/${sha256}`,
      })
      if (answer === undefined) throw await lostJournal(nodes, nodeId, id)
      return answer.status === 200 ? answer.body : undefined
    },

    /** What a model step sent and got, as its node rebuilds it; undefined: there is no such step. */
    async request({ id, nodeId, state }: RunPlace, stepId: string, before = 0): Promise<StepRequest | undefined> {
      if (state === 'queued' || nodeId === undefined) return undefined
      const node = await fallbackNode(reachableNodes, nodes, nodeId)
      const answer = await node?.read({ kind: 'request', id: `${id}/${stepId}`, from: before })
      if (answer === undefined) throw await lostJournal(nodes, nodeId, id)
      if (answer.status === 404) return undefined
      const { readAnswer } = await reading()
      const said = readAnswer('request', decoder.decode(answer.body))
      if (said === undefined) throw await lostJournal(nodes, nodeId, id)
      if ('error' in said) throw new ApiError('validation_failed', said.error)
      return said
    },

    async approvals(nodeId: string, ids: readonly string[]): Promise<Map<string, RemoteApproval> | undefined> {
      return ofThese(ids, await ask(nodeId, 'approvals', ids.join(',')))
    },

    /** How these turns ended, as their node has it. */
    async turns(nodeId: string, ids: readonly string[]): Promise<Map<string, TurnEnd> | undefined> {
      const found = await ask(nodeId, 'turns', ids.join(','))
      return found && new Map(found.map(end => [end.data.turnId, end]))
    },

    async messages(nodeId: string, sessionId: string): Promise<SessionMessage[] | undefined> {
      return ask(nodeId, 'messages', sessionId)
    },

    /** What a version of an agent says that only the nodes of its pool can read. */
    async texts(tenantId: string, versionId: string, { pool, box }: SealedTexts): Promise<ManifestTexts> {
      for (const node of await reachableNodes.of(tenantId, pool)) {
        const found = await read(node, 'texts', { id: versionId, box })
        // No more than these: they take the place of members of the manifest.
        if (found) return { systemPrompt: found.systemPrompt, files: found.files }
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

/** The journals of runs on nodes, a page at a time. */
function remoteJournals(reachableNodes: ReachableNodes, nodes: Pick<NodeStore, 'sharing' | 'get'>) {
  async function entries(nodeId: string, asked: NodeReadRequest): Promise<Entries | undefined> {
    const answer = await (await fallbackNode(reachableNodes, nodes, nodeId))?.read(asked)
    if (answer === undefined || answer.status !== 200) return undefined
    const text = decoder.decode(answer.body)
    const { readAnswer } = await reading()
    const found: JournalEntry[] = []
    let characters = 0
    const { events, hasMore } = readEventLines(text, MOST_EVENTS) ?? { events: readAnswer('events', text) ?? [] }
    for (const { hash, body } of events) {
      characters += body.length
      // Others have their turn in between: a page may have megabytes.
      if (characters > AT_ONCE) {
        await pageTurn()
        characters = 0
      }
      const entry = readAnswer('event', body)
      if (entry === undefined) return undefined
      found.push({ ...entry, hash })
    }
    return { found, hasMore: hasMore === true || found.length === asked.limit }
  }

  /** A page of the journal of a run; long events make it a short one. */
  async function page({ id, nodeId, state }: RunPlace, from: number, most: number): Promise<JournalPage> {
    if (state === 'queued' || nodeId === undefined) return { entries: [], isLast: true }
    const limit = Math.min(most, MOST_EVENTS)
    const got = await entries(nodeId, { kind: 'events', id, from, limit, lines: true, pages: true })
    if (got === undefined) throw await lostJournal(nodes, nodeId, id)
    return { entries: got.found, isLast: !got.hasMore }
  }

  return {
    page,

    async events(place: RunPlace, fromSeq: number, most: number): Promise<JournalEntry[]> {
      const found: JournalEntry[] = []
      // Its pages may be shorter than the caller's, who takes a short page for the last one.
      for (let isLast = false; !isLast && found.length < most; ) {
        const next = await page(place, fromSeq + found.length, most - found.length)
        found.push(...next.entries)
        isLast = next.isLast
      }
      return found.slice(0, most)
    },
  }
}

/** What was asked for alone: a node speaks for no run of another one. */
function ofThese<T extends { id: string }>(ids: readonly string[], found: readonly T[] | undefined) {
  return found && new Map(found.flatMap(one => (ids.includes(one.id) ? [[one.id, one] as const] : [])))
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
