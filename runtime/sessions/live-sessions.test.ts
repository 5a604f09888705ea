import { describe, expect, it } from 'vitest'
import { live } from './live-sessions.ts'
import type { Numbered } from './session-log.ts'
import type { SessionState } from './store.ts'
import { LIFE } from './store.ts'

const usage = { tokensIn: 1, tokensOut: 1, costUsd: 0 }

function fixture(options: { mostCharacters?: number } = {}) {
  const states = new Map<string, SessionState>()
  const told = live({ store: { states: async ids => new Map(ids.map(id => [id, states.get(id)])) }, ...options })
  /** A whole turn of one session, said in so many pieces. */
  function turn(sessionId: string, runId: string, base: number, pieces: readonly string[]): number {
    const place = { sessionId, runId, epoch: 1 }
    const voice = told.voice(place, base, false)
    voice.begin()
    for (const piece of pieces) voice.delta(piece)
    voice.said({ text: pieces.join(''), toolCalls: [] })
    const end = told.endOf(place)
    const { text } = voice.finish()
    const id = end!.eventId()
    told.ended(sessionId, id, { event: 'message_completed', data: { turnId: runId, text, usage, sessionId } })
    return id
  }
  return { ...told, states, turn }
}

const state = (id: string, lastEvent: number, turnId?: string): SessionState => ({
  id,
  status: 'active',
  stoppedMs: 0,
  stopReason: 'stopped',
  lastEvent,
  turnId,
  turnStatus: undefined,
})

describe('what is told of sessions', () => {
  it('is the last thousand events, and all of the turn in progress', () => {
    const { turn, streamed, voice } = fixture()
    const pieces = Array.from({ length: 700 }, () => 'x')
    const first = turn('s', 'a', 0, pieces)
    expect(first).toBe(701)
    const second = turn('s', 'b', first, pieces)
    expect(streamed('s')).toMatchObject({ from: second - 1000 })
    expect(streamed('s')?.events).toHaveLength(1000)
    const now = voice({ sessionId: 's', runId: 'c', epoch: 1 }, second, false)
    now.begin()
    for (let n = 0; n < 1024 + 64 * 100; n++) now.delta('abcd')
    const events = streamed('s')?.events ?? []
    expect(events).toHaveLength(1024 + 100)
    expect(events[0]).toMatchObject({ id: second + 1, data: { turnId: 'c', seq: 1 } })
  })

  it('is forgotten, oldest first, where nobody speaks or listens', () => {
    const { turn, streamed, watch } = fixture({ mostCharacters: 10_000 })
    const leave = watch('s0', { moved: () => undefined, closed: () => undefined })
    for (let n = 0; n < 20; n++) turn(`s${n}`, `r${n}`, 0, ['x'.repeat(500)])
    expect(streamed('s0')).toBeDefined()
    expect(streamed('s1')).toBeUndefined()
    expect(streamed('s19')).toBeDefined()
    leave()
  })

  it('starts over where another process has spoken in between', () => {
    const { turn, streamed } = fixture()
    expect(turn('s', 'a', 0, ['x'])).toBe(2)
    expect(turn('s', 'c', 9, ['y'])).toBe(11)
    expect(streamed('s')).toMatchObject({ from: 9, events: [{ id: 10 }, { id: 11 }] })
  })

  it('goes on under the same numbers when a turn comes back to this process, and under later ones elsewhere', () => {
    const { voice, streamed, endOf } = fixture()
    const place = { sessionId: 's', runId: 'a', epoch: 1 }
    const first = voice(place, 0, false)
    first.begin()
    first.delta('one')
    first.said({ text: 'one', toolCalls: [] })
    const again = voice({ ...place, epoch: 2 }, 0, false)
    expect(again).toBe(first)
    const later = voice({ ...place, epoch: 4 }, 0, false)
    expect(later).not.toBe(first)
    // The voice that was replaced is not heard any more, and what it said is void.
    first.delta('late')
    later.said({ text: 'one', toolCalls: [] })
    expect(streamed('s')?.events.map(({ id }) => id)).toEqual([3 * LIFE + 1])
    expect(endOf({ ...place, epoch: 5 })?.eventId()).toBe(4 * LIFE + 2)
  })

  it('is void once the turn has ended elsewhere', async () => {
    const { voice, streamed, states, look, watch } = fixture()
    const place = { sessionId: 's', runId: 'a', epoch: 1 }
    const moved: (SessionState | undefined)[] = []
    const leave = watch('s', { moved: one => void moved.push(one), closed: () => undefined })
    voice(place, 0, false).delta('half')
    states.set('s', state('s', 0, 'a'))
    await look('s')
    expect(streamed('s')?.events).toHaveLength(1)
    states.set('s', state('s', LIFE + 5))
    await look('s')
    expect(streamed('s')?.events).toEqual([])
    states.clear()
    await look('s')
    expect(streamed('s')).toBeUndefined()
    expect(moved.map(one => one?.lastEvent)).toEqual([0, LIFE + 5, undefined])
    leave()
  })

  it('reaches whoever listens as it is told', () => {
    const { turn, watch } = fixture()
    const heard: Numbered[] = []
    const leave = watch('s', { told: one => void heard.push(one), moved: () => undefined, closed: () => undefined })
    turn('s', 'a', 0, ['a', 'b'])
    leave()
    turn('s', 'b', 3, ['c'])
    expect(heard.map(({ id, event }) => [id, event])).toEqual([
      ...[1, 2].map(id => [id, 'message_delta']),
      [3, 'message_completed'],
    ])
  })
})
