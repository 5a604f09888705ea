import { Hono } from 'hono'
import type { Metrics } from '../../shared/metrics/metrics.ts'

export function metricsRoute({ metrics }: { metrics: Metrics }) {
  return new Hono().get('/metrics', c =>
    c.body(metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
  )
}
