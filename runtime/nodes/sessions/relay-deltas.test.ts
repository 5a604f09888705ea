import { expect, it } from 'vitest'
import { silentLog } from '../../../shared/log/log.ts'
import type { RemoteRun } from '../runs/remote-run.ts'
import { relayDeltas } from './relay-deltas.ts'

it('lets a node say the next piece once this one was looked at', async () => {
  const looked = Promise.withResolvers<undefined>()
  const relay = relayDeltas({
    remote: { get: () => looked.promise },
    sessions: { baseOf: async () => undefined, turn: async () => undefined },
    live: {} as never,
    log: silentLog(),
  })
  let next = false
  const said = relay.said('node', { sessionId: 's', turnId: 't', seq: 1, delta: 'x' }).then(() => (next = true))
  await new Promise(resolve => setTimeout(resolve, 10))
  expect(next).toBe(false)
  looked.resolve(undefined)
  await said
})

it('keeps no text of a turn without end: what comes after the most is left to its end', async () => {
  let kept = 0
  const voice = {
    begin: () => (kept = 0),
    delta: (text: string) => (kept += text.length),
  }
  const relay = relayDeltas({
    remote: { get: async () => ({ nodeId: 'node', sessionId: 's', epoch: 1 }) as RemoteRun },
    sessions: { baseOf: async () => 0, turn: async () => undefined },
    live: { voice: () => voice } as never,
    log: silentLog(),
  })
  const delta = 'x'.repeat(1_000_000)
  for (let seq = 1; seq <= 100; seq++) await relay.said('node', { sessionId: 's', turnId: 't', seq, delta })
  expect(kept).toBe(16_000_000)
  await relay.said('node', { sessionId: 's', turnId: 't', seq: 1, delta })
  expect(kept).toBe(1_000_000)
})
