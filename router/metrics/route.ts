import { Hono } from 'hono'

export interface MetricsDeps {
  metrics: { text(): Promise<string> }
}

export function metricsRoute({ metrics }: MetricsDeps) {
  return new Hono().get('/metrics', async c =>
    c.body(await metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
  )
}
