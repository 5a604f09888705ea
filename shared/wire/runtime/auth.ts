import { z } from 'zod'
import { displayName, expected, shape, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { id, moment, timestamp } from './conventions.ts'
import { isScope, scopes } from './scopes.ts'

export const API_KEY_PREFIX = 'wb_live_'
/** 32 random bytes make 43 characters; the bootstrap key may be any text of at least 32. */
export const API_KEY = /^wb_live_[A-Za-z0-9_-]{43}$/
export const BOOTSTRAP_KEY = /^wb_live_[A-Za-z0-9_-]{32,}$/

const scope = z.enum(scopes, {
  error: issue => (isScope(String(issue.input)) ? undefined : `unknown scope '${String(issue.input)}'`),
})

export const apiKey = named(
  'ApiKey',
  z.object({
    id,
    name: z.string(),
    /** The first 12 characters, to tell keys apart. */
    prefix: z.string(),
    scopes: z.array(z.string()),
    status: z.enum(['active', 'revoked', 'expired']),
    createdAt: timestamp,
    expiresAt: timestamp.optional(),
    lastUsedAt: timestamp.optional(),
  }),
)
export type ApiKey = z.infer<typeof apiKey>

export const apiKeyCreate = named(
  'ApiKeyCreate',
  z.strictObject({
    name: displayName(128),
    /** None: everything inside the tenant. */
    scopes: z.array(scope).default([]),
    expiresAt: moment.optional(),
  }),
)
export type ApiKeyCreate = z.input<typeof apiKeyCreate>

export const apiKeyCreated = named('ApiKeyCreated', z.object({ key: apiKey, rawKey: z.string() }))
export type ApiKeyCreated = z.infer<typeof apiKeyCreated>

export const roles = ['owner', 'member', 'viewer'] as const
export const role = z.enum(roles)
export type Role = z.infer<typeof role>

export const user = named(
  'User',
  z.object({ id, email: z.string(), name: z.string(), role, tenantId: z.string(), createdAt: timestamp }),
)
export type User = z.infer<typeof user>

export const email = shape(/^[^\s@]{1,64}@[^\s@]{1,255}$/, 'an e-mail address')
export const password = text(12, 256)

export const setup = named('Setup', z.strictObject({ token: text(1, 256), email, password, name: displayName(128) }))
export type Setup = z.infer<typeof setup>

export const setupDone = named('SetupDone', z.object({ user, key: apiKey, rawKey: z.string() }))
export type SetupDone = z.infer<typeof setupDone>

/** No length rule on the password: a login must not tell what a valid one looks like. */
export const login = named(
  'Login',
  z.strictObject({
    email: text(1, 320),
    password: text(1, 1024),
    /** Where the e-mail and the password fit several tenants: the one to log in to. */
    tenantId: text(1, 256).optional(),
  }),
)
export type Login = z.infer<typeof login>

export const loggedIn = named('LoggedIn', z.object({ user, csrfToken: z.string() }))
export type LoggedIn = z.infer<typeof loggedIn>

/** Only after a password that fits each of these. */
export const tenantChoice = named(
  'TenantChoice',
  z.object({
    error: z.string(),
    code: z.literal('several_tenants'),
    tenants: z.array(z.object({ id: z.string(), name: z.string() })),
  }),
)
export type TenantChoice = z.infer<typeof tenantChoice>

export const passwordChange = named(
  'PasswordChange',
  z.strictObject({ currentPassword: text(1, 1024), newPassword: password }),
)
export type PasswordChange = z.infer<typeof passwordChange>

export const tenant = named('Tenant', z.object({ id: z.string(), name: z.string(), createdAt: timestamp }))
export type Tenant = z.infer<typeof tenant>

export const tenantCreate = named(
  'TenantCreate',
  z.strictObject({ name: displayName(128) }, { error: expected('an object') }),
)
export type TenantCreate = z.infer<typeof tenantCreate>
