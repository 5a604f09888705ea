import { VERSION } from '../shared/version.ts'
import { openapi } from '../shared/wire/openapi.ts'
import { routerOperationEndpoints } from '../shared/wire/router/endpoints/operations.ts'
import { routerError } from '../shared/wire/router/error.ts'

/** The operations that this version mounts: the document names these and no other. */
const SERVED = [
  routerOperationEndpoints.healthz,
  routerOperationEndpoints.readyz,
  routerOperationEndpoints.metrics,
  routerOperationEndpoints.openapi,
]

export function servedDocument(): object {
  return openapi({
    title: 'Waybill router',
    version: VERSION,
    description: 'A proxy in front of model providers that keeps a hash-chained trace of every call.',
    endpoints: SERVED,
    errorSchema: routerError,
  })
}
