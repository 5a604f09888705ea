import { type SseFrame, sseResponse, sseText } from '../../shared/http/sse-write.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { runEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/runs.ts'
import { CHAIN, type JournalExport } from '../../shared/wire/runtime/journal.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { genesis, type JournalEntry, journalDocument } from '../execution/journal/event.ts'
import type { RunWatchers } from '../execution/run-watchers.ts'
import type { Principal } from '../http/http-env.ts'
import { type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { lastEventId, type StreamClients } from '../http/stream-clients.ts'
import { PAGE as FIRST_PAGE, type FollowDeps, follow } from './follow.ts'
import type { RequestsOfSteps } from './step-requests.ts'
import { stepsOf } from './steps.ts'
import type { RunStore, StreamOpening } from './store.ts'

export interface JournalDeps extends FollowDeps {
  runWatchers: Pick<RunWatchers, 'watch' | 'note'>
  runs: RunStore
  requests: RequestsOfSteps
  sha256: Sha256
  heartbeatMs: number
  clients: StreamClients
}

const RETRY_MS = 1500
const PAGE = 1000

/** What happened in a run: its steps, its journal, its stream (docs/spec/runtime.md §4 to §6). */
export function journalOperations({
  runs,
  requests,
  runWatchers,
  sha256,
  heartbeatMs,
  clients,
}: JournalDeps): Operation[] {
  const find = async (principal: Principal, { id }: { id: string }): Promise<Run> =>
    own(principal, await runs.summary(id), 'run', id)

  async function* pages(runId: string): AsyncGenerator<JournalEntry[]> {
    for (let next = 1; ; ) {
      const { entries, isLast } = await runs.page(runId, next, PAGE)
      if (entries.length > 0) yield entries
      if (isLast) return
      next += entries.length
    }
  }

  /** What a list of steps says: without what each of them gave. */
  async function outlines(runId: string): Promise<JournalEntry[]> {
    const found: JournalEntry[] = []
    for await (const page of pages(runId)) {
      for (const { payload, ...entry } of page) {
        const { error, code } = payload
        found.push({ ...entry, payload: { error, code } })
      }
    }
    return found
  }

  return [
    operation(endpoints.steps, async ({ principal, params }) => {
      const { id } = await find(principal, params)
      const progress = await runs.progress(id)
      return stepsOf(await outlines(id), progress?.recoverySeq ?? 0)
    }),
    operation(endpoints.stepRequest, async ({ principal, params, query: { before } }) => {
      const { id } = await find(principal, params)
      const request = await requests.of(id, params.stepId, before)
      if (request === undefined) throw notFound(`step of run ${id}`, params.stepId)
      return request
    }),
    operation(endpoints.journal, async ({ principal, params, context }): Promise<JournalExport | Response> => {
      const { id: runId, status } = await find(principal, params)
      if (context.req.header('accept')?.includes('application/x-ndjson')) {
        return context.body(piecewise(lines(pages(runId))), 200, {
          'content-type': 'application/x-ndjson; charset=utf-8',
        })
      }
      const first = genesis(runId, sha256).hash
      const about = { runId, chain: CHAIN, genesis: first, sealed: isTerminal(status) } as const
      const { entries, isLast } = await runs.page(runId, 1, PAGE)
      if (!isLast) {
        return context.body(piecewise(journalDocument(about, pages(runId))), 200, {
          'content-type': 'application/json',
        })
      }
      const head = entries.at(-1)?.hash ?? first
      return { ...about, head, eventCount: entries.length, events: entries as JournalExport['events'] }
    }),
    operation(endpoints.blob, async ({ principal, params, context }) => {
      const { id } = await find(principal, params)
      const content = await runs.blob(id, params.hash)
      if (content === undefined) throw notFound(`output of run ${id}`, params.hash)
      return context.body(new Uint8Array(content), 200, {
        'content-type': 'application/json',
        'content-security-policy': "default-src 'none'; sandbox",
      })
    }),
    operation(endpoints.events, async ({ principal, params: { id }, query: { from_seq, live }, context }) => {
      clients.refuseBeyond(principal.tenantId)
      const last = lastEventId(context)
      const fromSeq = last === undefined ? Math.max(from_seq ?? 1, 1) : last + 1
      // Noted before the read, so that nothing falls between the read and the watching.
      const since = runWatchers.note(id)
      let found: StreamOpening
      try {
        found = own(principal, await runs.streamOpening(id, fromSeq, FIRST_PAGE), 'run', id)
      } catch (error) {
        since()
        throw error
      }
      const terminal = isTerminal(found.status)
      // A browser's EventSource comes back after every end of a stream, and stays away only after this answer.
      if (last !== undefined && terminal && (found.page?.entries ?? (await runs.events(id, fromSeq, 1))).length === 0) {
        since()
        return context.body(null, 204)
      }
      const opening = { page: found.page, terminal, since }
      return sseResponse(
        (gone, send) => {
          const hand = (list: readonly JournalEntry[]) => send(framesOf(list))
          return clients.counted(
            'run',
            principal.tenantId,
            stream(follow({ runs, runWatchers }, id, { fromSeq, live, gone, opening, hand })),
          )
        },
        { retryMs: RETRY_MS, heartbeatMs, admitted: context.get('admitted') },
      )
    }),
  ]
}

async function* stream(lists: AsyncIterable<readonly JournalEntry[]>): AsyncGenerator<SseFrame> {
  for await (const list of lists) yield framesOf(list)
}

/** The watchers of a run get the same lists, so each is written out once for all of them. */
const written = new WeakMap<readonly JournalEntry[], SseFrame>()

function framesOf(list: readonly JournalEntry[]): SseFrame {
  const known = written.get(list)
  if (known) return known
  const texts = list.map(entry => {
    const { at, payload } = entry
    return sseText({ event: entry.kind, id: entry.seq, data: { ...entry, ts: at, data: payload, createdAt: at } })
  })
  const frames = utf8(texts.join(''))
  written.set(list, frames)
  return frames
}

async function* lines(pages: AsyncIterable<JournalEntry[]>): AsyncGenerator<string> {
  for await (const page of pages) yield page.map(entry => `${JSON.stringify(entry)}\n`).join('')
}

function piecewise(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(stream) {
      const { value, done } = await texts.next()
      if (done) stream.close()
      else stream.enqueue(utf8(value))
    },
    async cancel() {
      await texts.return(undefined)
    },
  })
}
