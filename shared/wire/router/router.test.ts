import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { check } from '../issues.ts'
import { profiles } from './conventions.ts'
import { chatError, errorBodyFor, messagesError, routerError } from './error.ts'
import { type RouterErrorCase, routerErrors } from './error-cases.ts'
import { feedbackRequest, toFeedback } from './feedback.ts'
import { modeValues, readMode } from './headers.ts'
import { mcpTools } from './mcp.ts'

const paths = (given: unknown) => {
  const result = check(feedbackRequest, given)
  return result.ok ? [] : result.details.map(found => found.path)
}

describe('feedback', () => {
  it('reads both shapes of the specification', () => {
    expect(paths({ request_id: 'r', outcome: 'correct' })).toEqual([])
    expect(paths({ trace_id: 't', gate_id: 'g', verdict: 'pass', reporter: 'ci' })).toEqual([])
  })

  it('means the same by both', () => {
    expect(toFeedback({ request_id: 'r', outcome: 'incorrect' })).toEqual({
      ref: 'r',
      gate_id: 'outcome',
      verdict: 'fail',
      reporter: 'client',
    })
    expect(toFeedback({ trace_id: 't', gate_id: 'g', verdict: 'abstain', reporter: 'ci', score: 0 })).toEqual({
      ref: 't',
      gate_id: 'g',
      verdict: 'abstain',
      reporter: 'ci',
      score: 0,
    })
  })

  it.each<[string, object, string]>([
    ['a mixture', { request_id: 'r', outcome: 'correct', verdict: 'pass' }, 'verdict'],
    ['an unknown outcome', { request_id: 'r', outcome: 'right' }, 'outcome'],
    ['an unknown verdict', { trace_id: 't', gate_id: 'g', verdict: 'ok', reporter: 'ci' }, 'verdict'],
    ['an unknown key', { request_id: 'r', outcome: 'correct', note: 'x' }, 'note'],
    ['a score over 1', { request_id: 'r', outcome: 'correct', score: 1.1 }, 'score'],
    ['a missing reporter', { trace_id: 't', gate_id: 'g', verdict: 'pass' }, 'reporter'],
    ['a long id', { request_id: 'r'.repeat(129), outcome: 'correct' }, 'request_id'],
  ])('refuses %s', (_, given, path) => {
    expect(paths(given)).toContain(path)
  })
})

describe('headers', () => {
  it('reads the seven mode values in any case', () => {
    expect(modeValues).toEqual(['observe', 'enforce', ...profiles])
    for (const value of modeValues) expect(readMode(` ${value.toUpperCase()} `)).toBe(value)
    fc.assert(
      fc.property(fc.string(), value => {
        const read = readMode(value)
        expect(read === undefined || read === value.trim().toLowerCase()).toBe(true)
      }),
    )
    expect(readMode('fast')).toBeUndefined()
  })
})

describe('errors', () => {
  const names = Object.keys(routerErrors) as RouterErrorCase[]

  it('has a body for every case in every dialect', () => {
    for (const name of names) {
      expect(check(messagesError, errorBodyFor('messages', name, 'm', 't')).ok).toBe(true)
      expect(check(chatError, errorBodyFor('chat', name, 'm', 't')).ok).toBe(true)
      expect(check(routerError, errorBodyFor('elsewhere', name, 'm', 't')).ok).toBe(true)
    }
  })

  it('shapes one as the contract does', () => {
    expect(errorBodyFor('messages', 'budget', 'No budget is left.', 't-1')).toEqual({
      type: 'error',
      error: { type: 'billing_error', message: 'No budget is left.' },
      request_id: 't-1',
    })
    expect(errorBodyFor('chat', 'budget', 'No budget is left.', 't-1')).toEqual({
      error: { message: 'No budget is left.', type: 'insufficient_quota', param: null, code: 'router_budget' },
    })
    expect(errorBodyFor('elsewhere', 'budget', 'm', 't')).toEqual({ error: { type: 'budget', message: 'm' } })
  })

  it('uses the statuses of the contract', () => {
    expect([...new Set(names.map(name => routerErrors[name].status))]).toEqual([
      400, 401, 402, 403, 404, 405, 408, 413, 422, 426, 500, 502, 503, 504,
    ])
  })
})

describe('audit tools', () => {
  it('are the nine of the contract, and only one of them writes', () => {
    expect(Object.keys(mcpTools)).toEqual([
      'list_traces',
      'get_trace',
      'get_savings',
      'get_evals',
      'explain_route',
      'rehearse_policy',
      'verify_receipts',
      'list_modes',
      'submit_feedback',
    ])
    expect(Object.entries(mcpTools).flatMap(([name, tool]) => (tool.readOnly ? [] : [name]))).toEqual([
      'submit_feedback',
    ])
  })

  it('describe objects both ways, as the protocol demands', () => {
    for (const tool of Object.values(mcpTools)) {
      expect(z.toJSONSchema(tool.input, { io: 'input' })).toMatchObject({ type: 'object' })
      expect(z.toJSONSchema(tool.output)).toMatchObject({ type: 'object' })
    }
  })

  it('rehearse one of two things', () => {
    expect(check(mcpTools.rehearse_policy.input, { start_rung: 1 })).toEqual({
      ok: true,
      value: { start_rung: 1, metric: 'cost' },
    })
    expect(check(mcpTools.rehearse_policy.input, {}).ok).toBe(false)
    expect(check(mcpTools.rehearse_policy.input, { start_rung: 1, policy_toml: 'x' }).ok).toBe(false)
    expect(check(mcpTools.list_traces.input, {})).toEqual({ ok: true, value: { limit: 20 } })
  })
})
