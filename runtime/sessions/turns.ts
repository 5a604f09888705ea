import type { InStatement } from '@libsql/client/web'
import { toUsd } from '../../shared/money/money.ts'
import { nanoPlus } from '../../shared/sql/sql-values.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { EndEffect, EndedRun } from '../execution/engine-deps.ts'
import { RunFailure } from '../execution/failure.ts'
import type { Claimed } from '../execution/lease-store.ts'
import type { Turn } from '../execution/turn.ts'
import { type Records, sealMaybe } from '../vault/records.ts'
import type { Live } from './live-sessions.ts'
import { finishOf, type TurnEnd, unpriced } from './session.ts'
import { LIFE, type SessionStore } from './store.ts'
import { type TurnInput, userText } from './turn-input.ts'

export interface TurnsDeps {
  store: Pick<SessionStore, 'openingOf' | 'baseOf' | 'hintOf'>
  records: Records
  live: Live
}

/** What the engine needs to know of sessions: what a turn begins with, and what its end means. */
export function turns({ store, records, live }: TurnsDeps) {
  return {
    async turnOf(run: Claimed, sessionId: string, { session, outputSchema }: Manifest): Promise<Turn> {
      const found = await store.openingOf(sessionId, run.id, session.historyTurns)
      if (!found) throw new RunFailure('internal', 'the session of this turn is gone')
      const { systemHint, before, base } = found
      const { turnHint = '', noTools, readOnlyTools } = run.input as TurnInput
      const place = { sessionId, runId: run.id, epoch: run.epoch }
      return {
        opening: openingOf(before, run.input),
        hints: [systemHint, turnHint],
        tools: noTools ? 'none' : readOnlyTools ? 'readOnly' : 'all',
        voice: live.voice(place, base, outputSchema !== undefined),
      }
    },

    /** What a turn began with, also when later turns have changed the hint of the session. */
    async turnAsItWas(
      run: Pick<Claimed, 'id' | 'input'>,
      sessionId: string,
      { session }: Manifest,
    ): Promise<Pick<Turn, 'opening' | 'hints'> | undefined> {
      const found = await store.openingOf(sessionId, run.id, session.historyTurns)
      if (!found) return undefined
      const hint = found.systemHint === '' ? '' : await store.hintOf(sessionId, run.id)
      const { turnHint = '' } = run.input as TurnInput
      return { opening: openingOf(found.before, run.input), hints: [hint, turnHint] }
    },

    async endEffect({
      run,
      status,
      error,
      spent,
      unpricedCalls,
      finishedMs,
    }: EndedRun): Promise<EndEffect | undefined> {
      const { id: runId, epoch, sessionId } = run
      if (sessionId === undefined) return undefined
      const speaking = live.endOf({ sessionId, runId, epoch })
      const finish = finishOf(status, error?.code)
      const said = finish && speaking?.voice.finish()
      const base = speaking ? 0 : await store.baseOf(runId)
      // Deleted with its session: there is nothing left to say it to.
      if (base === undefined) return undefined
      const eventId = speaking?.eventId() ?? base + (epoch - 1) * LIFE + 1
      const { tokensIn, tokensOut, costNano } = spent
      const failure = { error: error?.message ?? 'the turn was cancelled', code: error?.code ?? 'cancelled' }
      const end: TurnEnd = said
        ? {
            event: 'message_completed',
            data: {
              turnId: runId,
              text: said.text,
              sessionId,
              finish,
              usage: { tokensIn, tokensOut, costUsd: toUsd(costNano), ...unpriced(unpricedCalls) },
            },
          }
        : { event: 'message_error', data: { sessionId, turnId: runId, ...failure } }
      const kept = (field: string, text: string | null) => sealMaybe(records, text, { record: runId, field })
      return {
        statements: endTurn({
          runId,
          epoch,
          sessionId,
          spent,
          unpricedCalls,
          atMs: finishedMs,
          eventId,
          text: kept('text', said ? JSON.stringify(said.text) : null),
          toolCalls: kept('toolCalls', said && said.toolCalls.length > 0 ? JSON.stringify(said.toolCalls) : null),
          error: kept(
            'turnError',
            said ? (finish === 'complete' ? null : JSON.stringify({ finish })) : JSON.stringify(failure),
          ),
        }),
        kept: () => live.ended(sessionId, eventId, end),
      }
    },
  }
}

type Opening = NonNullable<Awaited<ReturnType<SessionStore['openingOf']>>>

function openingOf(before: Opening['before'], input: Claimed['input']): Turn['opening'] {
  return [
    ...before.flatMap(({ text, input }) => [
      { role: 'user' as const, text: userText(input) },
      { role: 'assistant' as const, text },
    ]),
    { role: 'user', text: userText(input) },
  ]
}

interface EndOfTurn {
  runId: string
  epoch: number
  sessionId: string
  /** JSON texts, as they are kept. */
  text: string | null
  toolCalls: string | null
  error: string | null
  spent: { tokensIn: number; tokensOut: number; costNano: number }
  unpricedCalls: number
  atMs: number
  /** Place of the end among the session's events. */
  eventId: number
}

const OWNED = "exists (select 1 from runs where id = ?1 and epoch = ?2 and status = 'running')"

/**
 * For the commit that ends a turn's run. The session is active again only if it was still processing this very turn: a late
 * turn changes nothing of a stopped one but its counters, and its end emits no event.
 */
function endTurn(turn: EndOfTurn): InStatement[] {
  const { runId, epoch, sessionId, text, toolCalls, error, spent, unpricedCalls, atMs, eventId } = turn
  const { tokensIn, tokensOut, costNano } = spent
  return [
    {
      sql: `update turns set status = case when ?4 is null then 'failed' else 'completed' end, text = ?4, tool_calls = ?5,
          error = ?6, tokens_in = ?7, tokens_out = ?8, cost_nano = ?9, ended_ms = ?10, unpriced_calls = ?12,
          event_id = case when exists (select 1 from sessions where id = ?3 and status = 'processing' and turn_id = ?1)
            then ?11 end
        where run_id = ?1 and ${OWNED}`,
      args: [
        runId,
        epoch,
        sessionId,
        text,
        toolCalls,
        error,
        tokensIn,
        tokensOut,
        costNano,
        atMs,
        eventId,
        unpricedCalls,
      ],
    },
    {
      sql: `update sessions set
          last_event = case status when 'processing' then max(last_event, ?4) else last_event end,
          status = case status when 'processing' then 'active' else status end,
          turn_id = null, updated_ms = ?5, tokens_in = tokens_in + ?6, tokens_out = tokens_out + ?7, cost_nano = ${nanoPlus('cost_nano', '?8')},
          unpriced_calls = unpriced_calls + ?9
        where id = ?3 and turn_id = ?1 and ${OWNED}`,
      args: [runId, epoch, sessionId, eventId, atMs, tokensIn, tokensOut, costNano, unpricedCalls],
    },
  ]
}
