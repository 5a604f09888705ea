import fc from 'fast-check'
import { expect, it } from 'vitest'
import { budgetLedger, type Caps } from '../budget/ledger.ts'
import { accountTenant } from './shard-accounts.ts'

const caps: Caps = {
  request: null,
  session: 1e9,
  day: 1e9,
  tenant_day: 1e9,
  route_day: 1e9,
  route_tenant_day: 1e9,
}

it('tells of every account of the ledger whose it is, whatever a client calls its session', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/)
  const route = fc.stringMatching(/^[0-9a-f]{8,64}$/)
  fc.assert(
    fc.property(name, fc.string(), route, (tenantId, sessionId, routeId) => {
      const ledger = budgetLedger(() => new Date(0))
      const reserved = ledger.open({ tenantId, sessionId, route: routeId }, caps).reserve(1)
      if (!reserved.ok) throw new Error('nothing was in the way')
      reserved.settle(1)
      const keys = ledger.takeUnsaved().map(({ key }) => key)
      expect(keys).toHaveLength(5)
      expect(keys.map(accountTenant)).toEqual([tenantId, undefined, tenantId, undefined, tenantId])
    }),
  )
})
