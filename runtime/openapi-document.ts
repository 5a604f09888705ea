import { VERSION } from '../shared/version.ts'
import { runtimeEndpoints } from '../shared/wire/runtime/endpoints.ts'
import { errorBody } from '../shared/wire/runtime/error.ts'

/** Loaded and built at the first request. */
export async function servedDocument(): Promise<object> {
  const { openapi } = await import('../shared/wire/openapi.ts')
  return openapi({
    // The service of this document serves what it describes.
    servers: [{ url: '/' }],
    title: 'Waybill agent runtime',
    version: VERSION,
    description: 'Executes AI agents durably, within budgets, with receipts.',
    endpoints: runtimeEndpoints,
    errorSchema: errorBody,
  })
}
