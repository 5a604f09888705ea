import fc from 'fast-check'
import { expect, it } from 'vitest'
import { runtimeEndpoints } from '../../shared/wire/runtime/endpoints.ts'
import { endpointMatcher } from './match-endpoint.ts'

const match = endpointMatcher(runtimeEndpoints)

it('finds every operation of the table by its own path, whatever its parameters hold', () => {
  const value = fc.stringMatching(/^[A-Za-z0-9._~-]{1,20}$/).filter(text => !/^\d*$/.test(text))
  fc.assert(
    fc.property(fc.constantFrom(...runtimeEndpoints), fc.infiniteStream(value), (endpoint, values) => {
      const path = endpoint.path.replace(/\{\w+\}/g, () => `x-${values.next().value}`)
      expect(match(endpoint.method, path)?.id).toBe(endpoint.id)
    }),
  )
})

it('prefers the literal segment', () => {
  expect(match('POST', '/v1/runs/forecast')?.id).toBe('forecastRun')
  expect(match('GET', '/v1/connectors/catalog')?.path).toBe('/v1/connectors/catalog')
})

it.each([
  ['PATCH', '/v1/runs'],
  ['GET', '/v1/agents/'],
  ['GET', '/v1/agents//versions'],
  ['GET', '/v1/agents/a/b'],
  ['GET', '/v1'],
  ['TRACE', '/v1/agents'],
])('%s %s is nobody’s', (method, path) => {
  expect(match(method, path)).toBeUndefined()
})

it('answers HEAD as GET', () => {
  expect(match('HEAD', '/v1/agents')?.id).toBe('listAgents')
})
