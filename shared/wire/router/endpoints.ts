import type { Endpoint } from '../endpoint.ts'
import { auditEndpoints } from './endpoints/audit.ts'
import { inboundEndpoints, passthroughEndpoints } from './endpoints/inbound.ts'
import { routerOperationEndpoints } from './endpoints/operations.ts'

/** The router by area; clients of the audit API take their arguments and answers from here. */
export const router = {
  inbound: inboundEndpoints,
  audit: auditEndpoints,
  operations: routerOperationEndpoints,
} as const

export const routerEndpoints: readonly Endpoint[] = [
  ...Object.values(router).flatMap((group): Endpoint[] => Object.values(group)),
  ...passthroughEndpoints,
]
