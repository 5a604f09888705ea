import { routerOperationEndpoints as endpoints } from '../../shared/wire/router/endpoints/operations.ts'
import { type Operation, operation } from '../http/operation.ts'

export interface MetricsDeps {
  metrics: { text(): Promise<string> }
}

export function metricsOperations({ metrics }: MetricsDeps): Operation[] {
  return [
    operation(endpoints.metrics, async ({ context }) =>
      context.body(await metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
    ),
  ]
}
