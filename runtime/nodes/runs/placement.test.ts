import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backends, isolationValues } from '../../../shared/wire/runtime/isolation.ts'
import { satisfies } from '../../agents/isolation.ts'
import { statusOf } from '../registry/node.ts'
import { type PlacementFacts, place, placeNear } from './placement.ts'

const manifest = (isolation: (typeof isolationValues)[number] = 'shared') => ({ isolation })
const here = { on: true, backends: [] }
const off = { on: false, backends: [] }

describe('place', () => {
  it.each<[string, PlacementFacts, object]>([
    [
      'what anybody can do, here',
      { manifest: manifest(), wanted: undefined, embedded: here, nodes: [] },
      { on: 'here' },
    ],
    [
      'what only a node can do, there',
      {
        manifest: manifest('gvisor'),
        wanted: undefined,
        embedded: here,
        nodes: [{ pool: 'eu', backends: ['gvisor'], connected: false }],
      },
      { on: 'pool', pool: 'eu' },
    ],
    [
      'to the pool that its agent names',
      {
        manifest: manifest(),
        wanted: 'eu',
        embedded: here,
        nodes: [
          { pool: 'default', backends: [], connected: true },
          { pool: 'eu', backends: [], connected: false },
        ],
      },
      { on: 'pool', pool: 'eu' },
    ],
    [
      'to a node that is connected rather than one that is away',
      {
        manifest: manifest(),
        wanted: undefined,
        embedded: off,
        nodes: [
          { pool: 'default', backends: [], connected: false },
          { pool: 'eu', backends: [], connected: true },
        ],
      },
      { on: 'pool', pool: 'eu' },
    ],
    [
      'nowhere, saying what there is',
      {
        manifest: manifest('microvm'),
        wanted: undefined,
        embedded: off,
        nodes: [{ pool: 'default', backends: ['wasm', 'runc'], connected: true }],
      },
      {
        on: 'nowhere',
        message:
          'no enrolled node offers isolation microvm (it needs firecracker or kata or qemu; available: runc, wasm)',
      },
    ],
    [
      'nowhere, when it must be here and nothing is',
      { manifest: manifest(), wanted: 'local', embedded: off, nodes: [] },
      { on: 'nowhere', message: expect.stringContaining('PLATFORM_EMBEDDED_NODE') },
    ],
  ])('sends a run %s', (_what, facts, expected) => {
    expect(place(facts)).toMatchObject(expected)
  })

  it('never gives a run to somebody who cannot honour its isolation', () => {
    const node = fc.record({
      pool: fc.constantFrom('default', 'eu', 'us'),
      backends: fc.subarray([...backends]),
      connected: fc.boolean(),
    })
    const facts = fc.record({
      isolation: fc.constantFrom(...isolationValues),
      wanted: fc.constantFrom(undefined, 'eu', 'us', 'nobody'),
      on: fc.boolean(),
      nodes: fc.array(node, { maxLength: 5 }),
    })
    fc.assert(
      fc.property(facts, ({ isolation, wanted, on, nodes }) => {
        const embedded = { on, backends: [] }
        const placed = place({ manifest: manifest(isolation), wanted, embedded, nodes })
        const able = nodes.filter(one => satisfies(isolation, one.backends) && (wanted ?? one.pool) === one.pool)
        if (placed.on === 'here') expect(on && isolation === 'shared' && wanted === undefined).toBe(true)
        else if (placed.on === 'pool') expect(able.map(({ pool }) => pool)).toContain(placed.pool)
        else expect(able).toEqual([])
        const here = (pool: string) => nodes.filter(one => one.connected && one.pool === pool)
        const near = placeNear({ manifest: manifest(isolation), wanted, embedded }, here)
        if (near !== undefined) expect(near).toEqual(placed)
      }),
    )
  })
})

it('tells how a node stands from what was last heard of it', () => {
  const node = { enrolledMs: 1, lastSeenMs: 1000, signedOff: false, draining: false }
  expect(statusOf({ ...node, enrolledMs: undefined }, 1000, 30_000)).toBe('pending')
  expect(statusOf({ ...node, lastSeenMs: undefined }, 1000, 30_000)).toBe('offline')
  expect(statusOf(node, 31_000, 30_000)).toBe('online')
  expect(statusOf({ ...node, draining: true }, 31_000, 30_000)).toBe('draining')
  expect(statusOf(node, 31_001, 30_000)).toBe('lost')
  expect(statusOf({ ...node, signedOff: true }, 1000, 30_000)).toBe('offline')
})
