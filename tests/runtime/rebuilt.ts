import { expect } from 'vitest'
import type { Step } from '../../shared/wire/runtime/run.ts'
import type { StepRequest } from '../../shared/wire/runtime/step-request.ts'
import type { Api } from './api.ts'

/** Every model step of a run is rebuilt to the digest that it recorded, whatever the run did. */
export async function expectRebuilt({ json }: Pick<Api, 'json'>, runId: string, steps: readonly Step[]): Promise<void> {
  for (const { stepId, kind } of steps) {
    if (kind !== 'model') continue
    const { request, without } = await json<StepRequest>(200, 'GET', `/v1/runs/${runId}/steps/${stepId}/request`)
    expect([stepId, without, request?.exact]).toEqual([stepId, undefined, true])
  }
}
