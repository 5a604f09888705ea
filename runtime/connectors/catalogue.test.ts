import { afterAll, beforeAll, expect, it } from 'vitest'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { connectorActions, connectorIds } from '../../shared/wire/runtime/catalog.ts'
import { schemaProblem } from '../json-schema/schema-check.ts'
import { schemaOf } from './arguments.ts'
import { catalogue } from './catalogue.ts'
import { fixtures } from './testing/fixtures.ts'
import { type ScriptedVendor, scriptedVendor } from './testing/scripted-vendor.ts'
import { describeAction, describeProbe } from './testing/seven-answers.ts'

const egress = nodeEgress({ rule: outboundRule([readAllowEntry('127.0.0.1')!]) })
let vendor: ScriptedVendor
beforeAll(async () => {
  vendor = await scriptedVendor()
})
afterAll(async () => {
  await egress.close()
  await vendor.close()
})

it('has every connector and action that the wire knows, with the same that only read', () => {
  const found = Object.fromEntries(
    connectorIds.map(id => {
      const actions = Object.entries(catalogue[id].actions).map(([name, { effect }]) => [name, effect === 'read'])
      return [catalogue[id].id, Object.fromEntries(actions)]
    }),
  )
  expect(found).toEqual(connectorActions)
  for (const id of connectorIds) expect(Object.keys(fixtures[id].actions)).toEqual(Object.keys(catalogue[id].actions))
})

it('has arguments that can be held against their schema', () => {
  for (const id of connectorIds) {
    for (const [name, action] of Object.entries(catalogue[id].actions)) {
      expect([id, name, schemaProblem(schemaOf(action))]).toEqual([id, name, undefined])
    }
  }
})

for (const id of connectorIds) {
  const given = { connector: catalogue[id], fixture: fixtures[id], egress: () => egress, vendor: () => vendor }
  for (const name of Object.keys(catalogue[id].actions)) describeAction(given, name)
  describeProbe(given)
}
