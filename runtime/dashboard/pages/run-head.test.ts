import { expect, it } from 'vitest'
import type { Run } from '../../../shared/wire/runtime/run.ts'
import { runHead } from './run-head.ts'

const run: Run = {
  id: '01a21cd2-d0ab-73a5-93d8-46c18b39dfe0',
  tenantId: 'default',
  agentName: 'six',
  agentId: 'a',
  agentVersionId: 'v',
  status: 'succeeded',
  tokensIn: 12,
  tokensOut: 6,
  costUsd: 0,
  labels: {},
  trigger: { kind: 'api' },
  isolation: { declared: 'shared' },
  budgetExceeded: false,
  createdAt: '2026-11-27T11:45:07.000Z',
  updatedAt: '2026-11-27T11:45:08.000Z',
}
const head = async (more: Partial<Run>) =>
  String(await runHead('/', { ...run, ...more }, { version: undefined, now: new Date() }))

it('says which calls the cost of a run leaves out', async () => {
  expect(await head({})).not.toContain('leaves out')
  expect(await head({ unpricedCalls: 1 })).toContain('The cost leaves out 1 call of models that have no price.')
  expect(await head({ unpricedCalls: 2 })).toContain('leaves out 2 calls')
})
