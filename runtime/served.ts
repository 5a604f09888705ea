import { VERSION } from '../shared/version.ts'
import { openapi } from '../shared/wire/openapi.ts'
import { operationEndpoints } from '../shared/wire/runtime/endpoints/operations.ts'
import { errorBody } from '../shared/wire/runtime/error.ts'

/** The operations that this version mounts: the document names these and no other. */
const SERVED = [
  operationEndpoints.healthz,
  operationEndpoints.readyz,
  operationEndpoints.metrics,
  operationEndpoints.openapi,
]

export function servedDocument(): object {
  return openapi({
    title: 'Waybill agent runtime',
    version: VERSION,
    description: 'Executes AI agents durably, within budgets, with receipts.',
    endpoints: SERVED,
    errorSchema: errorBody,
  })
}
