import { expect, it } from 'vitest'
import { sha256 } from '../../shared/sign/sha256.ts'
import { heldResponses, heldTokens, UNKNOWN_HISTORY_TOKENS } from './held-responses.ts'

const DAY_MS = 24 * 3_600_000
const holder = { provider: 'a', model: 'a/m', sessionId: 's', tokens: 700 }
const named = (...ids: string[]) => ({ ids, sealed: [] })

it('knows who made what for its own tenant, for thirty days after it was made', () => {
  let now = 0
  const held = heldResponses(() => now, sha256)
  held.keep('one', { ids: ['resp_1'], sealed: ['secret'] }, holder)
  expect(held.find('one', named('resp_1'))).toMatchObject({ holders: [holder], hasUnknown: false })
  // Sealed reasoning names its maker and holds no conversation.
  expect(held.find('one', { ids: [], sealed: ['secret'] })).toMatchObject({ makers: [holder], holders: [] })
  expect(held.find('other', named('resp_1'))).toEqual({ makers: [], holders: [], hasUnknown: true })
  now = 31 * DAY_MS
  expect(held.find('one', named('resp_1')).hasUnknown).toBe(true)
})

it('forgets what was used longest ago', () => {
  const held = heldResponses(() => 0, sha256)
  held.keep('t', named('first', 'second'), holder)
  held.find('t', named('first'))
  for (let i = 0; i < 99_999; i += 1) held.keep('t', named(`resp_${i}`), holder)
  expect(held.find('t', named('second')).hasUnknown).toBe(true)
  expect(held.find('t', named('first')).hasUnknown).toBe(false)
})

it('knows ids of any length, each by itself', () => {
  const held = heldResponses(() => 0, sha256)
  const long = 'x'.repeat(100_000)
  held.keep('t', named(`${long}1`), holder)
  expect(held.find('t', named(`${long}1`)).hasUnknown).toBe(false)
  expect(held.find('t', named(`${long}2`)).hasUnknown).toBe(true)
})

it('counts for a budget what a conversation may hold', () => {
  const known = { makers: [], holders: [holder, { ...holder, tokens: 90 }], hasUnknown: false }
  expect(heldTokens(known, 128_000)).toBe(700)
  expect(heldTokens({ ...known, hasUnknown: true }, 128_000)).toBe(128_000)
  expect(heldTokens({ ...known, hasUnknown: true }, null)).toBe(UNKNOWN_HISTORY_TOKENS)
})
