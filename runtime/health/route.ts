import { VERSION } from '../../shared/version.ts'
import { operationEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/operations.ts'
import type { Readyz } from '../../shared/wire/runtime/health.ts'
import { type Operation, operation } from '../http/operation.ts'

export interface HealthDeps {
  readiness: () => Promise<Readyz>
}

export function healthOperations({ readiness }: HealthDeps): Operation[] {
  return [
    operation(endpoints.healthz, () => ({ status: 'ok' as const, version: VERSION })),
    operation(endpoints.readyz, async ({ context }) => {
      const now = await readiness()
      return context.json(now, now.status === 'ready' ? 200 : 503)
    }),
  ]
}
