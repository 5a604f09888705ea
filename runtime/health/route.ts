import { Hono } from 'hono'
import { VERSION } from '../../shared/version.ts'
import type { Readyz } from '../../shared/wire/runtime/health.ts'

export interface HealthDeps {
  readiness: () => Promise<Readyz>
}

export function healthRoute({ readiness }: HealthDeps) {
  return new Hono()
    .get('/healthz', c => c.json({ status: 'ok', version: VERSION }))
    .get('/readyz', async c => {
      const now = await readiness()
      return c.json(now, now.status === 'ready' ? 200 : 503)
    })
}
