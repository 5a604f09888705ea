import { VERSION } from '../../shared/version.ts'
import { routerOperationEndpoints as endpoints } from '../../shared/wire/router/endpoints/operations.ts'
import type { RouterHealth, RouterReadiness } from '../../shared/wire/router/health.ts'
import { type Operation, operation } from '../http/operation.ts'

export interface HealthDeps {
  phase: () => RouterHealth['status']
  readiness: () => Promise<RouterReadiness>
}

export function healthOperations({ phase, readiness }: HealthDeps): Operation[] {
  return [
    operation(endpoints.healthz, ({ context }) => {
      const health: RouterHealth = { status: phase(), service: 'router', version: VERSION }
      return context.json(health, health.status === 'ok' ? 200 : 503)
    }),
    operation(endpoints.readyz, async ({ context }) => {
      const now = await readiness()
      return context.json(now, now.status === 'ready' ? 200 : 503)
    }),
  ]
}
