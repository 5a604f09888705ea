import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { live } from './live-sessions.ts'
import type { Mirror } from './remote-mirror.ts'
import { replayDeltas } from './replay-deltas.ts'
import type { Numbered } from './session-log.ts'
import type { SessionState } from './store.ts'
import { LIFE } from './store.ts'

const usage = { tokensIn: 1, tokensOut: 1, costUsd: 0 }
const BASE = 5

/** A process that speaks, and one that hears it. */
function fixture() {
  let state: SessionState = {
    id: 's',
    status: 'processing',
    stoppedMs: 0,
    stopReason: 'stopped',
    lastEvent: BASE,
    turnId: 'r',
    turnStatus: 'running',
  }
  const store = { states: async () => new Map([['s', state]]) }
  const [there, here] = [live({ store }), live({ store, wanted: () => asked++ })]
  let asked = 0
  const moved: number[] = []
  const told: Numbered[] = []
  here.watch('s', {
    pieces: true,
    told: event => told.push(event),
    moved: now => moved.push(now?.lastEvent ?? -1),
    closed: () => undefined,
  })
  return {
    there,
    here,
    moved,
    told,
    asked: () => asked,
    ends(lastEvent: number) {
      state = { ...state, status: 'active', turnId: undefined, lastEvent }
    },
    async pull(mirror: Mirror, waitMs = 0) {
      return mirror.take(await replayDeltas(there, { sessionId: 's', base: BASE, ...mirror.heard() }, waitMs))
    },
  }
}

const place = { sessionId: 's', runId: 'r', epoch: 1 }
const end = (text: string) => ({
  event: 'message_completed' as const,
  data: { turnId: 'r', text, usage, sessionId: 's' },
})
const textOf = (events: readonly Numbered[]) =>
  events.reduce(
    (text, event) =>
      event.event !== 'message_delta' ? text : event.data.seq === 1 ? event.data.delta : text + event.data.delta,
    '',
  )

describe('a turn that another process speaks', () => {
  it('is heard under the same ids whenever it is asked for, and whole when it ends', async () => {
    const steps = fc.array(
      fc.oneof(fc.constant('pull' as const), fc.constant('anew' as const), fc.string({ minLength: 1, maxLength: 3 })),
      { maxLength: 30 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async list => {
        const { there, here, told, ends, pull } = fixture()
        const mirror = here.mirror('s', BASE)!
        let text = ''
        const voice = there.voice(place, BASE, false)
        voice.begin()
        for (const step of list) {
          if (step === 'pull') await pull(mirror)
          else if (step === 'anew') {
            // An attempt that failed: what it said is void.
            voice.begin()
            text = ''
          } else {
            voice.delta(step)
            text += step
          }
        }
        voice.said({ text, toolCalls: [] })
        there.endOf(place)
        voice.finish()
        const id = BASE + LIFE
        there.ended('s', id, end(text))
        ends(id)
        expect(await pull(mirror)).toBe(true)
        expect(here.streamed('s')?.events).toEqual(there.streamed('s')?.events)
        expect(textOf(told)).toBe(text)
        expect(told.at(-1)).toMatchObject({ id, event: 'message_completed' })
        const ids = told.map(event => event.id)
        expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
      }),
    )
  })

  it('is waited for, and its end is told after its pieces and not before', async () => {
    const { there, here, told, moved, ends, pull } = fixture()
    const mirror = here.mirror('s', BASE)!
    expect(here.mirror('s', BASE)).toBeUndefined()
    const heard = pull(mirror, 10_000)
    const voice = there.voice(place, BASE, false)
    voice.begin()
    voice.delta('one')
    expect(await heard).toBe(false)
    expect(told).toMatchObject([{ id: BASE + 1, data: { delta: 'one' } }])
    voice.delta(' two')
    ends(BASE + LIFE)
    await here.look('s')
    expect(moved).toEqual([])
    voice.said({ text: 'one two', toolCalls: [] })
    there.endOf(place)
    voice.finish()
    there.ended('s', BASE + LIFE, end('one two'))
    expect(await pull(mirror)).toBe(true)
    expect(told.map(({ event }) => event)).toEqual(['message_delta', 'message_delta', 'message_completed'])
    await here.look('s')
    expect(moved).toEqual([BASE + LIFE])
    expect(mirror.wanted()).toBe(false)
  })

  it('is left to the store where it cannot be heard to its end', async () => {
    const { there, here, told, moved, ends, pull, asked } = fixture()
    await here.look('s')
    expect([moved, asked()]).toEqual([[BASE], 1])
    const first = here.mirror('s', BASE)!
    await here.look('s')
    // What was received need not be asked for.
    expect([moved, asked()]).toEqual([[BASE, BASE], 1])
    first.end()
    expect(first.take({ again: false, events: [] })).toBe(true)
    const mirror = here.mirror('s', BASE)!
    const voice = there.voice(place, BASE, false)
    voice.begin()
    voice.delta('one')
    await pull(mirror)
    ends(BASE + LIFE)
    for (let looks = 0; looks < 11; looks++) await here.look('s')
    expect(moved.at(-1)).toBe(BASE + LIFE)
    expect(mirror.wanted()).toBe(false)
    expect(here.streamed('s')?.events).toEqual([])
    expect(told).toHaveLength(1)
  })

  it('does not hold up the end of a turn of which nothing was heard', async () => {
    const { here, moved, ends } = fixture()
    const mirror = here.mirror('s', BASE)!
    ends(BASE + LIFE)
    await here.look('s')
    expect([moved, mirror.wanted()]).toEqual([[BASE + LIFE], false])
  })

  it('is not heard where it is not known from its beginning', async () => {
    const { there } = fixture()
    there.voice(place, BASE + 100, false).begin()
    const heard = { sessionId: 's', base: BASE, after: BASE, kept: 0 }
    expect(await replayDeltas(there, heard, 0)).toEqual({ covered: false, again: false, events: [] })
    expect(await replayDeltas(there, { ...heard, sessionId: 'unknown' }, 0)).toEqual({
      covered: true,
      again: false,
      events: [],
    })
  })
})
