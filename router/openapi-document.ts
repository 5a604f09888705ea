import { VERSION } from '../shared/version.ts'
import { openapi } from '../shared/wire/openapi.ts'
import { auditEndpoints } from '../shared/wire/router/endpoints/audit.ts'
import { inboundEndpoints, passthroughEndpoints } from '../shared/wire/router/endpoints/inbound.ts'
import { routerOperationEndpoints } from '../shared/wire/router/endpoints/operations.ts'
import { routerError } from '../shared/wire/router/error.ts'

/** The operations that this version mounts: the document names these and no other. */
const SERVED = [
  ...Object.values(inboundEndpoints),
  ...passthroughEndpoints,
  ...Object.values(auditEndpoints),
  ...Object.values(routerOperationEndpoints),
]

export function servedDocument(): object {
  return openapi({
    // The service of this document serves what it describes.
    servers: [{ url: '/' }],
    title: 'Waybill router',
    version: VERSION,
    description: 'A proxy in front of model providers that keeps a hash-chained trace of every call.',
    endpoints: SERVED,
    errorSchema: routerError,
  })
}
