import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { check } from '../issues.ts'
import { decisionMissing } from './approval.ts'
import { apiKeyCreate, login, setup } from './auth.ts'
import { budgetPut } from './budget.ts'
import { connectorIds, connectorRef } from './catalog.ts'
import { connectorInstall, executeBody } from './connector.ts'
import { emptyBody } from './conventions.ts'
import { runtimeEndpoints } from './endpoints.ts'
import { errorBody, errorCodes, statusOf } from './error.ts'
import { nodeCreate, nodeDeleteQuery } from './node.ts'
import { modelSettings, providerSave, secretPut } from './provider.ts'
import { isTerminal, runCancel, runCreate, runErrorCodes, runEventsQuery, runFork, runStatuses } from './run.ts'
import { previewQuery, scheduleCreate, scheduleUpdate } from './schedule.ts'
import { messageCreate, sessionCreate } from './session.ts'
import { forecastRequest, rangeProblem, usageQuery } from './usage.ts'
import { webhookCreate } from './webhook.ts'

const good = (schema: z.ZodType, given: unknown): unknown => {
  const result = check(schema, given)
  if (!result.ok) throw new Error(JSON.stringify(result.details))
  return result.value
}
const bad = (schema: z.ZodType, given: unknown): string[] => {
  const result = check(schema, given)
  return result.ok ? [] : result.details.map(found => found.path)
}

describe('runs', () => {
  it('takes the body of the specification, and an absent input as empty', () => {
    expect(good(runCreate, { agentName: 'a', input: { prompt: 'x' } })).toEqual({
      agentName: 'a',
      input: { prompt: 'x' },
    })
    expect(good(runCreate, { agentName: 'a' })).toEqual({ agentName: 'a', input: {} })
  })

  it('names a missing agentName and unknown keys', () => {
    expect(check(runCreate, {})).toEqual({ ok: false, details: [{ path: 'agentName', message: 'Required' }] })
    expect(bad(runCreate, { agentName: 'a', inputs: {} })).toEqual(['inputs'])
    expect(bad(runCreate, { agentName: 'a', input: 'text' })).toEqual(['input'])
    expect(bad(runCreate, undefined)).toEqual([''])
  })

  it('reads the idempotency key under its three names', () => {
    for (const name of ['idempotencyKey', 'idempotency_key'])
      expect(good(runCreate, { agent_name: 'a', [name]: 'k' })).toMatchObject({ agentName: 'a', idempotencyKey: 'k' })
    expect(bad(runCreate, { agentName: 'a', idempotencyKey: 'k\n' })).toEqual(['idempotencyKey'])
  })

  it('cancels with or without a body', () => {
    expect(good(runCancel, undefined)).toEqual({})
    expect(good(runCancel, { reason: 'late' })).toEqual({ reason: 'late' })
    expect(bad(runFork, {})).toEqual(['fromStepId'])
  })

  it('opens a stream from a seq, live unless told otherwise', () => {
    expect(good(runEventsQuery, {})).toEqual({ live: true })
    expect(good(runEventsQuery, { from_seq: '3', live: 'false' })).toEqual({ from_seq: 3, live: false })
    expect(good(runEventsQuery, { from_seq: '0' })).toEqual({ from_seq: 0, live: true })
    expect(bad(runEventsQuery, { from_seq: '-1' })).toEqual(['from_seq'])
  })

  it('ends in three statuses and with one of 28 codes', () => {
    expect(runStatuses.filter(isTerminal)).toEqual(['succeeded', 'failed', 'cancelled'])
    expect(new Set(runErrorCodes).size).toBe(28)
  })
})

describe('approvals', () => {
  it('asks for what the reason needs', () => {
    expect(decisionMissing('uncertain_step', true, {})).toMatchObject({ path: 'resolution' })
    expect(decisionMissing('uncertain_step', true, { resolution: 'completed' })).toMatchObject({ path: 'output' })
    expect(decisionMissing('uncertain_step', true, { resolution: 'retry' })).toBeUndefined()
    expect(decisionMissing('question', true, {})).toBeUndefined()
    expect(decisionMissing('question', true, { comment: 'yes' })).toBeUndefined()
    expect(decisionMissing('uncertain_step', false, {})).toBeUndefined()
    expect(decisionMissing('approval_required', true, {})).toBeUndefined()
  })
})

describe('sessions', () => {
  it('keeps environment as it is', () => {
    expect(good(sessionCreate, { agent_name: 'a', environment: { x: [1] } })).toEqual({
      agentName: 'a',
      environment: { x: [1] },
    })
  })

  it('bounds a message and its attachments', () => {
    expect(good(messageCreate, { content: 'hi' })).toEqual({ content: 'hi' })
    expect(bad(messageCreate, { content: '' })).toEqual(['content'])
    expect(bad(messageCreate, { content: 'x'.repeat(100_001) })).toEqual(['content'])
    const attachment = { name: 'a.png', mediaType: 'image/png', data: 'AAAA' }
    expect(bad(messageCreate, { content: 'x', attachments: Array.from({ length: 11 }, () => attachment) })).toEqual([
      'attachments',
    ])
    expect(bad(messageCreate, { content: 'x', attachments: [{ ...attachment, data: '*' }] })).toEqual([
      'attachments.0.data',
    ])
  })
})

describe('schedules', () => {
  it('takes the body of the specification and writes out the defaults', () => {
    expect(
      good(scheduleCreate, {
        agentName: 'a',
        cronExpr: '0 9 * * 1',
        timezone: 'Europe/Berlin',
        config: { input: { x: 1 } },
        enabled: true,
      }),
    ).toEqual({
      agentName: 'a',
      cronExpr: '0 9 * * 1',
      timezone: 'Europe/Berlin',
      config: { input: { x: 1 } },
      enabled: true,
      overlap: 'allow',
      catchUp: 'one',
      catchUpLimit: 10,
    })
  })

  it('reads inputTemplate as an object or as JSON text', () => {
    for (const inputTemplate of [{ x: 1 }, '{"x":1}'])
      expect(good(scheduleCreate, { agentName: 'a', cronExpr: '@daily', inputTemplate })).toMatchObject({
        config: { input: { x: 1 } },
      })
    for (const inputTemplate of ['{', '[1]', 3])
      expect(bad(scheduleCreate, { agentName: 'a', cronExpr: '@daily', inputTemplate })).toEqual(['inputTemplate'])
  })

  it('changes only what is named, and forgets a zone by null', () => {
    expect(good(scheduleUpdate, { timezone: null })).toEqual({ timezone: null })
    expect(good(scheduleUpdate, {})).toEqual({})
  })

  it('previews 1 to 50 firings', () => {
    expect(good(previewQuery, { cronExpr: '* * * * *' })).toEqual({ cronExpr: '* * * * *', count: 5 })
    expect(bad(previewQuery, { cronExpr: '* * * * *', count: '51' })).toEqual(['count'])
    expect(bad(previewQuery, {})).toEqual(['cronExpr'])
  })
})

describe('connectors and settings', () => {
  it('knows the 17 connectors and their actions', () => {
    expect(connectorIds).toHaveLength(17)
    expect(connectorRef('slack.post_message')).toEqual({ connectorId: 'slack', action: 'post_message' })
    for (const unknown of ['fax', 'slack.', 'slack.toString', 'toString', 'slack.post_message.x'])
      expect(connectorRef(unknown)).toBeUndefined()
  })

  it('leaves an unknown connector to the route, and config free', () => {
    expect(good(connectorInstall, { connectorId: 'fax', config: { any: 1 } })).toBeTruthy()
    expect(bad(connectorInstall, { connectorId: 'slack' })).toEqual(['config'])
    expect(good(executeBody, undefined)).toEqual({})
    expect(bad(executeBody, [1])).toEqual([''])
  })

  it.each<[unknown, string[]]>([
    [{ provider: 'anthropic', apiKey: 'k' }, []],
    [{ provider: 'anthropic' }, ['apiKey']],
    [{ provider: 'nobody', apiKey: 'k' }, ['provider']],
    [{ provider: 'openai-compatible:lab', baseUrl: 'http://lab/v1' }, []],
    [{ provider: 'openai-compatible' }, ['baseUrl']],
    [{ provider: 'bedrock', apiKey: 'k' }, ['region']],
    [{ provider: 'vertex', apiKey: 'k' }, ['project', 'location']],
    [{ provider: 'demo' }, []],
    [{ provider: 'openai', apiKey: 'k', baseUrl: 'ftp://x' }, ['baseUrl']],
  ])('provider %j lacks %j', (given, missing) => {
    expect(bad(providerSave, given)).toEqual(missing)
  })

  it('takes candidates as provider/model only', () => {
    expect(
      good(modelSettings, {
        aliases: { auto: ['openai/gpt-5'] },
        prices: { 'openai/gpt-5': { inPerMTok: 1, outPerMTok: 2 } },
      }),
    ).toBeTruthy()
    expect(bad(modelSettings, { aliases: { auto: ['chat-small'] } })).toEqual(['aliases.auto.0'])
    expect(bad(modelSettings, { aliases: { mine: [] } })).toEqual(['aliases.mine'])
    expect(bad(modelSettings, { prices: { 'openai/gpt-5': { inPerMTok: -1, outPerMTok: 2 } } })).toEqual([
      'prices.openai/gpt-5.inPerMTok',
    ])
    expect(bad(secretPut, { value: '' })).toEqual(['value'])
  })
})

describe('budgets, usage, forecast', () => {
  it('puts every field that is left out back to no limit', () => {
    expect(good(budgetPut, { maxRunsPerDay: 0 })).toEqual({
      maxCostUsdPerDay: null,
      maxCostUsdPerRun: null,
      maxTokensPerDay: null,
      maxRunsPerDay: 0,
      hardFail: true,
      notifyAtPct: 80,
      toolLimits: {},
    })
    expect(bad(budgetPut, { maxTokensPerDay: -1, notifyAtPct: 101 })).toEqual(['maxTokensPerDay', 'notifyAtPct'])
    expect(good(budgetPut, { toolLimits: { 'slack.post_message': 3 } })).toBeTruthy()
    expect(bad(budgetPut, { toolLimits: { slack: 3 } })).toEqual(['toolLimits.slack'])
  })

  it('reads a prompt as a string', () => {
    expect(good(forecastRequest, { agentName: 'a', input: 'hello' })).toEqual({
      agentName: 'a',
      input: { prompt: 'hello' },
    })
    expect(good(forecastRequest, { agent_name: 'a' })).toEqual({ agentName: 'a', input: {} })
    expect(bad(forecastRequest, { agentName: 'a', input: 3 })).toEqual(['input'])
  })

  it('spans at most 366 days', () => {
    expect(rangeProblem('2026-01-01', '2026-12-31')).toBeUndefined()
    expect(rangeProblem('2024-01-01', '2024-12-31')).toBeUndefined()
    expect(rangeProblem('2026-01-01', '2027-01-02')).toMatchObject({ path: 'to' })
    expect(rangeProblem('2026-01-02', '2026-01-01')).toMatchObject({ path: 'to' })
    expect(bad(usageQuery, { from: 'yesterday', groupBy: 'tenant' })).toEqual(['from', 'groupBy'])
    expect(bad(usageQuery, { from: '2026-02-29', to: '2026-04-31T00:00:00Z' })).toEqual(['from', 'to'])
    expect(bad(usageQuery, { from: '2028-02-29', to: '2028-02-29T23:59:59.5+02:00' })).toEqual([])
  })
})

describe('access, nodes, webhooks', () => {
  it('names an unknown scope', () => {
    expect(check(apiKeyCreate, { name: 'k', scopes: ['agents:fly'] })).toEqual({
      ok: false,
      details: [{ path: 'scopes.0', message: "unknown scope 'agents:fly'" }],
    })
    expect(good(apiKeyCreate, { name: 'k' })).toEqual({ name: 'k', scopes: [] })
  })

  it('asks for 12 characters at setup but not at login', () => {
    expect(bad(setup, { token: 't', email: 'a@b.example', password: 'short', name: 'A' })).toEqual(['password'])
    expect(good(login, { email: 'a@b.example', password: 'short' })).toBeTruthy()
  })

  it('reads nodes and webhooks', () => {
    expect(good(nodeCreate, { name: 'n' })).toEqual({ name: 'n', pool: 'default' })
    expect(good(nodeDeleteQuery, { force: 'true' })).toEqual({ force: true })
    expect(good(webhookCreate, { url: 'https://x.example/h' })).toEqual({
      url: 'https://x.example/h',
      events: [],
      enabled: true,
    })
    expect(bad(webhookCreate, { url: 'x', events: ['run.started'] })).toEqual(['url', 'events.0'])
  })
})

describe('errors', () => {
  it('has the statuses of the contract and 410, and three codes of its own', () => {
    expect([...new Set(Object.values(statusOf))]).toEqual([400, 401, 402, 403, 404, 409, 410, 413, 429, 500, 502, 503])
    // 26 of the contract, the one for a store that is away (docs/decisions/025-a-store-that-is-away.md), the one for a login that
    // fits several tenants, and the one for a node that was removed (108).
    expect(errorCodes).toHaveLength(29)
    expect(errorCodes).toEqual(expect.arrayContaining(['store_unavailable', 'several_tenants', 'node_removed']))
  })

  it('keeps the members that one error adds', () => {
    const body = { error: 'over budget', code: 'budget_exceeded', dimension: 'runsPerDay', limit: 1, used: 1 }
    expect(good(errorBody, body)).toEqual(body)
    expect(bad(errorBody, { error: 'x', code: 'teapot' })).toEqual(['code'])
  })
})

describe('names and labels', () => {
  it.each(['half \ud800', '\udc00 half', 'n\0l'])(
    'that no store keeps as they are (%j) are refused with a sentence',
    name => {
      const message = 'expected no NUL and no half of a surrogate pair'
      expect(check(nodeCreate, { name })).toEqual({ ok: false, details: [{ path: 'name', message }] })
      expect(check(apiKeyCreate, { name, scopes: ['runs:read'] })).toMatchObject({ ok: false, details: [{ message }] })
      expect(check(nodeCreate, { name: 'n', labels: { a: name } })).toMatchObject({ ok: false, details: [{ message }] })
      expect(bad(nodeCreate, { name: 'n', labels: { [name]: 'a' } })).toHaveLength(1)
      expect(bad(scheduleCreate, { agentName: 'a', cronExpr: '* * * * *', name })).toEqual(['name'])
      expect(bad(nodeCreate, { name: 'whole \ud83d\ude00', labels: { '\ud83d\ude00': '' } })).toEqual([])
    },
  )
})

describe('endpoints without a body of their own', () => {
  it('take none, or an empty object', () => {
    expect(good(emptyBody, undefined)).toEqual({})
    expect(bad(emptyBody, { x: 1 })).toEqual(['x'])
    for (const e of runtimeEndpoints) if (e.method === 'POST') expect(e.body, e.id).toBeDefined()
  })
})
