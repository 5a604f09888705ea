import fc from 'fast-check'
import { beforeEach, expect, it } from 'vitest'
import { type NodeLink, nodeLinks } from '../registry/node-link.ts'
import { nodeLoads } from './node-loads.ts'

const AIM = { tenantId: 't', pool: 'p', pinned: undefined, isolation: 'shared' } as const
let links: ReturnType<typeof nodeLinks>
let loads: ReturnType<typeof nodeLoads>

function link(nodeId: string, given: Partial<NodeLink> = {}): NodeLink {
  const made: NodeLink = {
    nodeId,
    tenantId: 't',
    pool: 'p',
    backends: [],
    slots: 1,
    draining: false,
    restingUntilMs: 0,
    wake: () => undefined,
    read: async () => undefined,
    drain: () => undefined,
    end: () => undefined,
    here: async () => true,
    ...given,
  }
  links.up(made)
  return made
}

beforeEach(() => {
  links = nodeLinks()
  loads = nodeLoads(links, () => new Date(1000))
})

it('gives nothing to a node before it is known that nothing waits for it, and none again while something does', () => {
  const one = link('one')
  expect(loads.take(AIM)).toBeUndefined()
  loads.idle(one)
  expect(loads.take(AIM)).toBe(one)
  loads.waiting('t', 'other')
  expect(loads.take(AIM)).toBe(one)
  loads.waiting('t', 'p')
  expect(loads.take(AIM)).toBeUndefined()
})

it.each<[string, Partial<NodeLink>, Partial<Parameters<typeof loads.take>[0]>]>([
  ['of another pool', { pool: 'other' }, {}],
  ['of another tenant', { tenantId: 'other' }, {}],
  ['that is drained', { draining: true }, {}],
  ['that has just refused', { restingUntilMs: 1001 }, {}],
  ['that cannot hold its isolation', {}, { isolation: 'gvisor' }],
  ['that has not what it begins with', {}, { pinned: 'two' }],
])('gives a run to no node %s', (_, given, aim) => {
  loads.idle(link('one', given))
  expect(loads.take({ ...AIM, ...aim })).toBeUndefined()
})

it('gives no node more than four runs for each of its slots, and always to the least busy one', () => {
  const act = fc.oneof(
    fc.record({ is: fc.constant('take' as const) }),
    fc.record({
      is: fc.constant('ended' as const),
      node: fc.constantFrom('a', 'b'),
      runs: fc.integer({ min: 0, max: 3 }),
    }),
    fc.record({ is: fc.constant('read' as const), a: fc.nat(9), b: fc.nat(9) }),
  )
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), acts => {
      links = nodeLinks()
      loads = nodeLoads(links, () => new Date(1000))
      const slots = { a: 1, b: 2 }
      for (const id of ['a', 'b'] as const) loads.idle(link(id, { slots: slots[id] }))
      let has: Record<string, number> = { a: 0, b: 0 }
      for (const one of acts) {
        if (one.is === 'read') {
          has = { a: one.a, b: one.b }
          loads.read(new Map(Object.entries(has)))
        } else if (one.is === 'ended') {
          loads.ended(one.node, one.runs)
          has[one.node] = Math.max(0, has[one.node]! - one.runs)
        } else {
          const room = (['a', 'b'] as const).filter(id => has[id]! < slots[id] * 4)
          const taken = loads.take(AIM)?.nodeId as 'a' | 'b' | undefined
          expect(taken !== undefined).toBe(room.length > 0)
          if (taken === undefined) continue
          expect(has[taken]! / slots[taken]).toBe(Math.min(...room.map(id => has[id]! / slots[id])))
          has[taken]! += 1
        }
      }
    }),
  )
})
