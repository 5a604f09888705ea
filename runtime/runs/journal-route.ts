import { Hono } from 'hono'
import { type SseFrame, sseFrame, sseResponse } from '../../shared/http/sse-write.ts'
import { joined, utf8 } from '../../shared/sign/bytes.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import { CHAIN, type JournalExport } from '../../shared/wire/runtime/journal.ts'
import { isTerminal, type Run, runEventsQuery } from '../../shared/wire/runtime/run.ts'
import { genesis, type JournalEntry } from '../execution/journal/event.ts'
import type { Principal, RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { readQuery } from '../http/read-query.ts'
import type { StreamClients } from '../http/stream-clients.ts'
import { type FollowDeps, follow } from './follow.ts'
import { stepsOf } from './steps.ts'
import type { RunStore } from './store.ts'

export interface JournalDeps extends FollowDeps {
  runs: RunStore
  sha256: Sha256
  heartbeatMs: number
  clients: StreamClients
}

const RETRY_MS = 1500
const PAGE = 1000

/** What happened in a run: its steps, its journal, its stream (docs/spec/runtime.md §4 to §6). */
export function journalRoute({ runs, runWatchers, sha256, heartbeatMs, clients }: JournalDeps) {
  async function find(principal: Principal, id: string): Promise<Run> {
    return own(principal, await runs.summary(id), 'run', id)
  }

  async function* pages(runId: string): AsyncGenerator<JournalEntry[]> {
    for (let next = 1; ; ) {
      const page = await runs.events(runId, next, PAGE)
      if (page.length > 0) yield page
      if (page.length < PAGE) return
      next += page.length
    }
  }

  return new Hono<RuntimeHttpEnv>()
    .get('/v1/runs/:id/steps', async c => {
      const { id } = await find(c.get('principal'), c.req.param('id'))
      const progress = await runs.progress(id)
      const events: JournalEntry[] = []
      for await (const page of pages(id)) events.push(...page)
      return c.json(stepsOf(events, progress?.recoverySeq ?? 0))
    })
    .get('/v1/runs/:id/journal', async c => {
      const run = await find(c.get('principal'), c.req.param('id'))
      if (c.req.header('accept')?.includes('application/x-ndjson')) {
        return c.body(lines(pages(run.id)), 200, { 'content-type': 'application/x-ndjson; charset=utf-8' })
      }
      const events: JournalEntry[] = []
      for await (const page of pages(run.id)) events.push(...page)
      const first = genesis(run.id, sha256).hash
      return c.json({
        ...{ runId: run.id, chain: CHAIN, genesis: first, head: events.at(-1)?.hash ?? first },
        ...{ eventCount: events.length, sealed: isTerminal(run.status) },
        events: events as JournalExport['events'],
      } satisfies JournalExport)
    })
    .get('/v1/runs/:id/blobs/:hash', async c => {
      const { id } = await find(c.get('principal'), c.req.param('id'))
      const hash = c.req.param('hash')
      const content = await runs.blob(id, hash)
      if (content === undefined) throw notFound(`output of run ${id}`, hash)
      return c.body(new Uint8Array(content), 200, {
        'content-type': 'application/json',
        'content-security-policy': "default-src 'none'; sandbox",
      })
    })
    .get('/v1/runs/:id/events', async c => {
      const { id, status } = await find(c.get('principal'), c.req.param('id'))
      const { from_seq, live } = readQuery(c, runEventsQuery)
      const last = /^\d{1,15}$/.exec(c.req.header('last-event-id') ?? '')?.[0]
      const fromSeq = last === undefined ? Math.max(from_seq ?? 1, 1) : Number(last) + 1
      // A browser's EventSource comes back after every end of a stream, and stays away only after this answer.
      if (last !== undefined && isTerminal(status) && (await runs.events(id, fromSeq, 1)).length === 0) {
        return c.body(null, 204)
      }
      return sseResponse(
        (gone, send) => {
          const hand = (list: readonly JournalEntry[]) => send(framesOf(list))
          return clients.counted('run', stream(follow({ runs, runWatchers }, id, { fromSeq, live, gone, hand })))
        },
        { retryMs: RETRY_MS, heartbeatMs },
      )
    })
}

async function* stream(lists: AsyncIterable<readonly JournalEntry[]>): AsyncGenerator<SseFrame> {
  for await (const list of lists) yield framesOf(list)
}

/** The watchers of a run get the same lists, so each is written out once for all of them. */
const written = new WeakMap<readonly JournalEntry[], SseFrame>()

function framesOf(list: readonly JournalEntry[]): SseFrame {
  const known = written.get(list)
  if (known) return known
  const frames = joined(
    list.map(entry => {
      const { at, payload } = entry
      return sseFrame({
        ...{ event: entry.kind, id: entry.seq },
        data: { ...entry, ts: at, data: payload, createdAt: at },
      })
    }),
  )
  written.set(list, frames)
  return frames
}

function lines(pages: AsyncGenerator<JournalEntry[]>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(stream) {
      const { value, done } = await pages.next()
      if (done) stream.close()
      else stream.enqueue(utf8(value.map(entry => JSON.stringify(entry) + '\n').join('')))
    },
    async cancel() {
      await pages.return(undefined)
    },
  })
}
