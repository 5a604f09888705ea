import { Hono } from 'hono'

export interface MetricsDeps {
  metrics: { text(): string }
}

export function metricsRoute({ metrics }: MetricsDeps) {
  return new Hono().get('/metrics', c =>
    c.body(metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
  )
}
