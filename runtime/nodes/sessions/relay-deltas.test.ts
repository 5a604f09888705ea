import { expect, it } from 'vitest'
import { silentLog } from '../../../shared/log/log.ts'
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
