import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runtimeEndpoints } from './endpoints.ts'
import { allows, expand, mayMint, resourceScopes, scopes } from './scopes.ts'

const held = fc.uniqueArray(fc.constantFrom(...scopes), { maxLength: 5 })
const one = fc.constantFrom(...scopes)

describe('allows', () => {
  it.each([
    [['agents:write'], ['agents:read'], true],
    [['agents:read'], ['agents:write'], false],
    [['runs:read'], ['receipts:read'], true],
    [['runs:write'], ['receipts:read'], true],
    [['runs:execute'], ['runs:write', 'runs:execute'], true],
    [['runs:read'], ['runs:execute', 'runs:read'], true],
    [['runs:execute'], ['runs:read'], false],
    [['read'], ['keys:read'], true],
    [['read'], ['agents:write'], false],
    [['write'], ['connectors:execute'], true],
    [['write'], ['runs:approve'], false],
    [['write'], ['keys:read'], false],
    [['write'], ['nodes:write'], false],
    [['admin'], ['runs:approve'], true],
    [['admin'], ['keys:write'], true],
    [['admin'], ['platform:admin'], false],
    [['platform:admin'], ['nodes:read'], true],
    [['platform:admin'], ['agents:read'], false],
    [[], ['keys:write'], true],
    [[], ['platform:admin'], false],
    [['nonsense'], ['agents:read'], false],
  ])('%j against %j is %s', (have, need, answer) => {
    expect(allows(have, need)).toBe(answer)
  })

  it('asks for nothing where nothing is needed', () => {
    expect(allows(['agents:read'], [])).toBe(true)
  })

  it('opens every endpoint of the tenant to admin, and the tenants to platform:admin only', () => {
    for (const e of runtimeEndpoints.filter(e => e.scopes)) {
      expect(allows(['admin'], e.scopes ?? []), e.id).toBe(!e.scopes?.includes('platform:admin'))
    }
  })

  it('opens every reading endpoint to read, and no writing one', () => {
    const exceptions = ['forecastRun', 'verifyReceipt', 'issueReceipt']
    // People are an administrator's alone, also to look at.
    const ofAdmins = (scopes: readonly string[]) => scopes.includes('platform:admin') || scopes.includes('admin')
    for (const e of runtimeEndpoints.filter(e => e.scopes && !ofAdmins(e.scopes))) {
      if (exceptions.includes(e.id) || e.id === 'executeConnectorRead') continue
      expect(allows(['read'], e.scopes ?? []), e.id).toBe(e.method === 'GET')
    }
  })
})

describe('implication', () => {
  it('is transitive: what is implied by something implied is implied', () => {
    fc.assert(
      fc.property(held, have => {
        const all = expand(have)
        for (const scope of all) for (const further of expand([scope])) expect(all.has(further)).toBe(true)
        expect(expand([...all])).toEqual(all)
      }),
    )
  })

  it('is monotone: more scopes never allow less', () => {
    fc.assert(
      fc.property(
        held.filter(list => list.length > 0),
        held,
        one,
        (have, more, need) => {
          if (allows(have, [need])) expect(allows([...have, ...more], [need])).toBe(true)
        },
      ),
    )
  })

  it('includes the reading scope in every writing one', () => {
    for (const scope of resourceScopes.filter(name => name.endsWith(':write')))
      expect(allows([scope], [scope.replace(':write', ':read')])).toBe(true)
  })
})

describe('mayMint', () => {
  it('never lets a key make a stronger one', () => {
    fc.assert(
      fc.property(held, held, one, (have, wanted, need) => {
        if (mayMint(have, wanted) && allows(wanted, [need])) expect(allows(have, [need])).toBe(true)
      }),
    )
  })

  it('lets a key without scopes make another, and a narrow key not', () => {
    expect(mayMint([], [])).toBe(true)
    expect(mayMint(['keys:write'], [])).toBe(false)
    expect(mayMint(['keys:write', 'agents:write'], ['agents:read', 'keys:read'])).toBe(true)
  })
})
