import { VERSION } from '../shared/version.ts'
import { openapi } from '../shared/wire/openapi.ts'
import { routerEndpoints } from '../shared/wire/router/endpoints.ts'
import { routerError } from '../shared/wire/router/error.ts'

export function servedDocument(): object {
  return openapi({
    // The service of this document serves what it describes.
    servers: [{ url: '/' }],
    title: 'Waybill router',
    version: VERSION,
    description: 'A proxy in front of model providers that keeps a hash-chained trace of every call.',
    endpoints: routerEndpoints,
    errorSchema: routerError,
  })
}
