import { describe, expect, it } from 'vitest'
import { check } from '../issues.ts'
import { eventKinds, hashedMembers, journalEvent, payloads } from './journal.ts'
import { receipt, verifyRequest } from './receipt.ts'
import { sessionEvents } from './session.ts'

const runId = '11111111-1111-4111-8111-111111111111'
const hex = 'a'.repeat(64)

// The second event of the contract's test vector (§5).
const completed = {
  seq: 2,
  kind: 'step_completed',
  stepId: 'model-1',
  runId,
  attempt: 1,
  at: '2026-01-02T03:04:06.000Z',
  payload: { output: { text: 'é<&>' } },
  meta: { costUsd: 0.00015, tokensIn: 12, tokensOut: 3 },
  hash: 'd078c8d8d134f14098112b900cb15e0c44bfaca51d09ddcdd652ae17999279f3',
}

const envelope = {
  payload: {
    version: 1,
    runId,
    tenantId: 'default',
    agentName: 'a',
    agentVersionId: runId,
    manifestHash: hex,
    status: 'succeeded',
    inputHash: hex,
    outputHash: hex,
    tokensIn: 12,
    tokensOut: 3,
    costUsd: 0.00015,
    models: ['demo/echo'],
    isolation: 'shared',
    nodeId: 'local',
    chain: 'sha256-v1',
    journalHash: hex,
    eventCount: 2,
    createdAt: '2026-01-02T03:04:05.678Z',
    finishedAt: '2026-01-02T03:04:06.000Z',
    issuedAt: '2026-01-02T03:04:06.000Z',
    keyId: 'a'.repeat(16),
  },
  signature: 'AA==',
  publicKey: 'AA==',
  algorithm: 'Ed25519',
}

describe('journal', () => {
  it('reads an event without losing a hashed member, known or not', () => {
    const event = {
      ...completed,
      payload: { ...completed.payload, later: [1] },
      meta: { ...completed.meta, later: 'x' },
    }
    expect(check(journalEvent, event)).toEqual({ ok: true, value: event })
    expect(hashedMembers.every(member => member in completed)).toBe(true)
  })

  it('has the seven kinds, each with its payload', () => {
    expect(eventKinds).toHaveLength(7)
    expect(check(journalEvent, { ...completed, kind: 'run_completed' }).ok).toBe(false)
    expect(
      check(journalEvent, { ...completed, kind: 'step_failed', payload: { error: 'x', code: 'y' } }),
    ).toMatchObject({
      ok: false,
      details: [{ path: 'payload.transient', message: 'Required' }],
    })
    const scored = { score: 0.75, threshold: 0.75, decision: 'execute', estimator: 'verbalized', gate: 'tools' }
    expect(check(payloads.confidence_evaluated, scored).ok).toBe(true)
  })

  it('has the four session events', () => {
    expect(Object.keys(sessionEvents)).toEqual([
      'message_delta',
      'message_completed',
      'message_error',
      'session_stopped',
    ])
    expect(check(sessionEvents.message_delta, { sessionId: runId, turnId: runId, seq: 0, delta: 'x' }).ok).toBe(false)
  })
})

describe('receipt', () => {
  it('reads the envelope of the contract', () => {
    expect(check(receipt, envelope)).toEqual({ ok: true, value: envelope })
  })

  it('takes the envelope alone or with a journal', () => {
    expect(check(verifyRequest, envelope)).toEqual({ ok: true, value: { receipt: envelope } })
    const journal = {
      runId,
      chain: 'sha256-v1',
      genesis: hex,
      head: hex,
      eventCount: 1,
      sealed: true,
      events: [completed],
    }
    expect(check(verifyRequest, { receipt: envelope, journal })).toEqual({
      ok: true,
      value: { receipt: envelope, journal },
    })
  })

  it('lets a forged payload or event through to the verifier, which says what is wrong with it', () => {
    const forged = { ...envelope, payload: { ...envelope.payload, tokensIn: -1, extra: true } }
    expect(check(verifyRequest, forged)).toEqual({ ok: true, value: { receipt: forged } })
    const journal = { runId, chain: 'sha256-v1', events: [{ ...completed, at: 'never', payload: {} }] }
    expect(check(verifyRequest, { receipt: envelope, journal }).ok).toBe(true)
  })

  it('refuses another algorithm and a body that is none', () => {
    expect(check(verifyRequest, { ...envelope, algorithm: 'RS256' })).toEqual({
      ok: false,
      details: [{ path: 'algorithm', message: "expected 'Ed25519'" }],
    })
    expect(check(verifyRequest, {}).ok).toBe(false)
    expect(check(verifyRequest, 'text').ok).toBe(false)
  })
})
