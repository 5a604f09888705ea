import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkpoint, routerKeys } from '../wire/router/checkpoint.ts'
import { feedbackRecord } from '../wire/router/feedback.ts'
import { traceRecord } from '../wire/router/trace.ts'
import { claimedEvent, claimedJournal } from '../wire/runtime/journal.ts'
import { receipt, receiptKeys } from '../wire/runtime/receipt.ts'
import {
  CHECKPOINT,
  FEEDBACK,
  JOURNAL,
  type Members,
  RECEIPT,
  ROUTER_KEYS,
  RUNTIME_KEYS,
  TRACE,
  unknownMember,
} from './members.ts'

interface Schema {
  type?: string
  properties?: Record<string, Schema>
  items?: Schema
  allOf?: Schema[]
  anyOf?: Schema[]
  $ref?: string
  $defs?: Record<string, Schema>
}

/** The members of a schema, at every level. */
function membersOf(schema: Schema, defs: Record<string, Schema>): true | Members | [Members] {
  const named = schema.$ref === undefined ? schema : defs[schema.$ref.split('/').at(-1)!]!
  const one = named.allOf?.[0] ?? named.anyOf?.find(({ type }) => type !== 'null') ?? named
  if (one !== named) return membersOf(one, defs)
  if (one.items !== undefined) {
    const items = membersOf(one.items, defs)
    return items === true ? true : [items as Members]
  }
  if (one.properties === undefined || Object.keys(one.properties).length === 0) return true
  return Object.fromEntries(
    Object.entries(one.properties).map(([name, member]) => [name, membersOf(member, defs)]),
  ) as Members
}

function members(schema: z.ZodType) {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema
  return membersOf(json, json.$defs ?? {})
}

describe('the members of a format', () => {
  it.each<[string, Members, z.ZodType]>([
    ['receipt', RECEIPT, receipt],
    ['journal', JOURNAL, claimedJournal.extend({ events: z.array(claimedEvent) })],
    ['keys of a runtime', RUNTIME_KEYS, receiptKeys],
    ['record', TRACE, traceRecord],
    ['feedback', FEEDBACK, feedbackRecord],
    ['checkpoint', CHECKPOINT, checkpoint],
    ['keys of a router', ROUTER_KEYS, routerKeys],
  ])('of a %s are those of its schema', (_, table, schema) => {
    expect(table).toEqual(members(schema))
  })

  it('are named where they should not stand', () => {
    expect(unknownMember({ events: [{ seq: 1 }, { output: 1 }] }, JOURNAL)).toBe('events/1/output')
    expect(unknownMember({ events: [{ payload: { free: 1 } }] }, JOURNAL)).toBeUndefined()
    expect(unknownMember(JSON.parse('{"__proto__":{}}'), RECEIPT)).toBe('__proto__')
    expect(unknownMember({ payload: { node: { publicKey: '', constructor: 1 } } }, RECEIPT)).toBe(
      'payload/node/constructor',
    )
  })
})
