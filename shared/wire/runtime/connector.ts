import { z } from 'zod'
import { query } from '../aliases.ts'
import { freeForm, text } from '../bounds.ts'
import { named } from '../named.ts'
import { id, timestamp } from './conventions.ts'

export const catalogEntry = named(
  'CatalogEntry',
  z.object({
    connectorId: z.string(),
    name: z.string(),
    auth: z.string(),
    configKeys: z.array(z.string()),
    /** Of a vendor with a consent page: the <CONNECTOR> of PLATFORM_OAUTH_<CONNECTOR>_CLIENT_ID, and whether that is set. */
    oauth: z.object({ client: z.string(), configured: z.boolean() }).optional(),
    actions: z.array(
      z.object({
        name: z.string(),
        readOnly: z.boolean(),
        /** JSON Schema. */
        arguments: freeForm,
      }),
    ),
  }),
)
export type CatalogEntry = z.infer<typeof catalogEntry>

/** An id outside the catalogue is a 404 by the contract, so it is no enum here. */
export const connectorInstall = named(
  'ConnectorInstall',
  z.strictObject({ connectorId: text(1, 128), config: freeForm, displayName: text(0, 256).optional() }),
)
export type ConnectorInstall = z.infer<typeof connectorInstall>

const connectorStatus = z.enum(['installed', 'expired'])

export const connectorInstalled = named(
  'ConnectorInstalled',
  z.object({
    connectorId: z.string(),
    status: z.literal('installed'),
    id,
    ready: z.boolean(),
    missing: z.array(z.string()),
    warnings: z.array(z.string()),
  }),
)
export type ConnectorInstalled = z.infer<typeof connectorInstalled>

export const connector = named(
  'Connector',
  z.object({
    connectorId: z.string(),
    status: connectorStatus,
    installedAt: timestamp,
    id,
    displayName: z.string(),
    authMethod: z.string(),
    ready: z.boolean(),
    baseUrl: z.string().optional(),
    lastTest: z.object({ at: timestamp, success: z.boolean() }).optional(),
    updatedAt: timestamp,
  }),
)
export type Connector = z.infer<typeof connector>

export const MASKED = '***'

/** The single read adds `config`, every secret in it masked. */
export const connectorDetail = named('ConnectorDetail', connector.extend({ config: freeForm }))
export type ConnectorDetail = z.infer<typeof connectorDetail>

/** `action` is free text here: an unknown one is a 400 that lists the valid ones, which only the catalogue knows. */
export const executeQuery = z.looseObject({ action: z.string().optional() })
export const executeBody = freeForm.prefault({})

export const executeResult = named(
  'ConnectorResult',
  z.object({ result: freeForm, connector: z.string(), action: z.string(), data: freeForm }),
)
export type ExecuteResult = z.infer<typeof executeResult>

export const connectorTest = named(
  'ConnectorTest',
  z.object({ success: z.boolean(), message: z.string(), latencyMs: z.number().min(0), account: z.string().optional() }),
)
export type ConnectorTest = z.infer<typeof connectorTest>

export const oauthStart = named(
  'OAuthStart',
  z.strictObject({ connectorId: text(1, 128).optional(), redirectAfter: text(1, 2048).optional() }).prefault({}),
  'The connector is named here or by the query parameter `connector`.',
)
export const oauthStartQuery = query({ connector: text(1, 128).optional() })

export const oauthStarted = named(
  'OAuthStarted',
  z.object({ redirectUrl: z.string(), state: z.string(), expiresAt: timestamp }),
)
export type OAuthStarted = z.infer<typeof oauthStarted>

export const oauthCallbackQuery = z.object({
  code: z.string().optional(),
  state: z.string().optional(),
  error: z.string().optional(),
})

export const connectorParams = z.object({ connectorId: text(1, 128) })
