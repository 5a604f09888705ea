import { Hono } from 'hono'
import { VERSION } from '../../shared/version.ts'
import type { RouterHealth, RouterReadiness } from '../../shared/wire/router/health.ts'

export interface HealthDeps {
  phase: () => RouterHealth['status']
  readiness: () => Promise<RouterReadiness>
}

export function healthRoute({ phase, readiness }: HealthDeps) {
  return new Hono()
    .get('/healthz', c => {
      const status = phase()
      return c.json({ status, service: 'router', version: VERSION } satisfies RouterHealth, status === 'ok' ? 200 : 503)
    })
    .get('/readyz', async c => {
      const now = await readiness()
      return c.json(now, now.status === 'ready' ? 200 : 503)
    })
}
