import fc from 'fast-check'
import { expect, it } from 'vitest'
import { live } from './live-sessions.ts'
import { follow } from './route.ts'
import type { TurnEnd } from './session.ts'
import type { Numbered } from './session-log.ts'
import { LIFE, type SessionState } from './store.ts'

const step = fc.oneof(
  fc.record({ do: fc.constant('say' as const), text: fc.string({ minLength: 1, maxLength: 4 }) }),
  fc.record({ do: fc.constantFrom('end', 'attempt', 'restart', 'elsewhere', 'leave', 'come', 'look') }),
)

const usage = { tokensIn: 0, tokensOut: 0, costUsd: 0 }

it('tells every turn once and in order, whoever leaves and comes back when, and whatever process speaks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      const ends: { id: number; end: TurnEnd }[] = []
      const state: SessionState = {
        id: 's',
        status: 'active',
        stoppedMs: 0,
        stopReason: 'stopped',
        lastEvent: 0,
        turnId: undefined,
        turnStatus: undefined,
      }
      const store = {
        states: async () => new Map([['s', { ...state }]]),
        // A page is one turn.
        endsAfter: async (_id: string, after: number) => {
          const all = ends.filter(({ id }) => id > after)
          return { ends: all.slice(0, 1), isLast: all.length < 2 }
        },
        lastCompleted: async () => ({ ends: [], isLast: true }),
      }
      let runWatchers = live({ store, pollMs: 1e6 })
      let epoch = 1
      let text = ''
      let voice: ReturnType<typeof runWatchers.voice> | undefined
      const place = () => ({ sessionId: 's', runId: state.turnId!, epoch })
      const completed = (id: number): TurnEnd => {
        const end = {
          event: 'message_completed' as const,
          data: { turnId: state.turnId!, text, usage, sessionId: 's' },
        }
        ends.push({ id, end })
        Object.assign(state, { lastEvent: id, turnId: undefined })
        voice = undefined
        return end
      }
      const begin = () => {
        if (state.turnId === undefined) {
          state.turnId = `t${ends.length}`
          epoch = 1
        }
        voice ??= runWatchers.voice(place(), state.lastEvent, false)
        voice.begin()
        text = ''
      }

      const heard: Numbered[] = []
      let reader: { gone: AbortController; done: Promise<void> } | undefined
      const come = () => {
        const gone = new AbortController()
        const lastId = heard.at(-1)?.id ?? 0
        const read = async () => {
          const deps = { store, live: runWatchers, now: () => new Date(0) }
          for await (const event of follow(deps, 's', { lastId, replay: 0, gone: gone.signal })) heard.push(event)
        }
        reader = { gone, done: read() }
      }
      const leave = async () => {
        reader?.gone.abort()
        await reader?.done
        reader = undefined
      }
      const settled = () => new Promise(resolve => setImmediate(resolve))

      come()
      for (const one of steps) {
        if (one.do === 'say' && 'text' in one) {
          if (!voice) begin()
          voice?.delta(one.text)
          text += one.text
        } else if (one.do === 'attempt') begin()
        else if (one.do === 'end' && voice) {
          voice.said({ text, toolCalls: [] })
          const { voice: speaking, eventId } = runWatchers.endOf(place())!
          speaking.finish()
          const id = eventId()
          runWatchers.ended('s', id, completed(id))
        } else if (one.do === 'restart') {
          // The process dies: its readers are cut off, and the turn goes on in the next one.
          await leave()
          runWatchers.close()
          runWatchers = live({ store, pollMs: 1e6 })
          voice = undefined
          epoch++
          if (state.turnId !== undefined) begin()
          come()
        } else if (one.do === 'elsewhere') {
          // Another process takes the turn, or has one of its own, and ends it.
          state.turnId ??= `t${ends.length}`
          text = 'from elsewhere'
          completed(state.lastEvent + 5 * LIFE)
          await runWatchers.look('s')
        } else if (one.do === 'leave') await leave()
        else if (one.do === 'come' && !reader) come()
        else await runWatchers.look('s')
        await settled()
      }
      if (!reader) come()
      await settled()
      await runWatchers.look('s')
      await settled()
      await leave()

      const ids = heard.map(({ id }) => id)
      expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
      const told = heard.filter(({ event }) => event === 'message_completed')
      expect(told.map(({ id }) => id)).toEqual(ends.map(({ id }) => id))
      // Who stayed has the text of each turn from its pieces alone.
      if (steps.some(one => one.do === 'leave')) return
      const texts = new Map<string, string>()
      for (const { event, data } of heard) {
        if (event === 'message_delta') {
          texts.set(data.turnId, data.seq === 1 ? data.delta : (texts.get(data.turnId) ?? '') + data.delta)
        } else if (event === 'message_completed' && data.text !== 'from elsewhere') {
          expect(texts.get(data.turnId) ?? '').toBe(data.text)
        }
      }
    }),
    { numRuns: 200 },
  )
})
