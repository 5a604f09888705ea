import { z } from 'zod'
import { displayName, shape } from '../bounds.ts'
import { acceptsRecord } from '../read-only.ts'
import { named } from '../schema-names.ts'
import { email, password, role, user } from './auth.ts'
import { timestamp } from './conventions.ts'

/** The owner is the person who set the installation up; no other person becomes one. */
const givenRole = z.enum(['member', 'viewer'])

export const person = named(
  'Person',
  user.extend({
    /** `invited`: has no password yet. */
    status: z.enum(['invited', 'active', 'disabled']),
    role,
    /** Of the last login that is still open. */
    lastLoginAt: timestamp.optional(),
  }),
)
export type Person = z.infer<typeof person>

export const personCreate = named(
  'PersonCreate',
  z.strictObject({ email, name: displayName(128), role: givenRole.default('member') }),
)
export type PersonCreate = z.input<typeof personCreate>

const patchFields = named(
  'PersonPatch',
  z.strictObject({ name: displayName(128).optional(), role: givenRole.optional(), disabled: z.boolean().optional() }),
)
export const personPatch = acceptsRecord(patchFields, patchFields.shape, person, ['lastLoginAt'])
export type PersonPatch = z.infer<typeof personPatch>

/** A one-time link with which a person sets a password; shown once. */
export const personLink = named(
  'PersonLink',
  z.object({ user: person, linkToken: z.string(), link: z.string(), expiresAt: timestamp }),
)
export type PersonLink = z.infer<typeof personLink>

export const invitation = named(
  'Invitation',
  z.strictObject({ token: shape(/^.{1,256}$/su, 'the token of an invitation'), password }),
)

export const invitationDone = named('InvitationDone', z.object({ user }))
export type InvitationDone = z.infer<typeof invitationDone>
