import { z } from 'zod'
import { dropAbsent, query } from '../aliases.ts'
import { freeForm, int, num, plainText, shape, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { CUSTOM_ACTION } from './catalog.ts'
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

/** Largest OpenAPI document; the largest body of a request holds it as well, where that is smaller. */
export const MOST_DOCUMENT_CHARACTERS = 2 * 1024 * 1024

const pointer = shape(/^(?:\/(?:[^~/]|~[01])*)*$/, 'a JSON Pointer such as /data/items').max(512)

const chosenOperation = z.strictObject({
  operationId: text(1, 256),
  /** What the action is called; default: the operationId, with `_` for what a name cannot have. */
  name: shape(CUSTOM_ACTION, "a name of 1 to 38 letters, digits, '_' or '-'").optional(),
  /** What a second call does; default by the method. */
  effect: z.enum(['read', 'idempotent', 'once']).optional(),
  /** Where in the answer the result stands; default: all of it. */
  result: pointer.optional(),
  /** How the next page is asked for: the query parameter, and where the answer has its value (else in the Link header). */
  pages: z.strictObject({ parameter: text(1, 256), next: pointer.optional() }).optional(),
})
export type ChosenOperation = z.output<typeof chosenOperation>

/** An id outside the catalogue is a 404 by the contract, so it is no enum here. */
export const connectorInstall = named(
  'ConnectorInstall',
  z.strictObject({
    connectorId: text(1, 128),
    config: freeForm,
    displayName: plainText(0, 256).optional(),
    /** For `http-…`: an OpenAPI 3.0 or 3.1 document, as JSON or as the text of JSON or YAML. */
    openapi: z
      .union([z.string().max(MOST_DOCUMENT_CHARACTERS), freeForm], {
        error: `expected an OpenAPI document, an object or a text of up to ${MOST_DOCUMENT_CHARACTERS} characters`,
      })
      .optional(),
    /** Those of its operations that become actions. */
    operations: z
      .array(
        z.union([text(1, 256), chosenOperation], {
          error: 'expected an operationId or an object with one',
        }),
      )
      .min(1)
      .max(100)
      .optional(),
    /** How fast it may be called; default: 10 at a time. */
    rate: z.strictObject({ concurrent: int(1, 100).default(10), perSecond: num(0.01, 1000).optional() }).optional(),
    /** The operationId that a test of the install calls; default: the first that reads and needs no arguments. */
    testOperation: text(1, 256).optional(),
  }),
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
export const executeQuery = z.preprocess(dropAbsent, z.looseObject({ action: z.string().optional() }))
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
