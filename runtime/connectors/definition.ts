import type { z } from 'zod'
import { text } from '../../shared/wire/bounds.ts'
import type { AnyConnectorId } from '../../shared/wire/runtime/catalog.ts'

/** How a connector proves who it is. `token` is whatever the vendor calls it: an API key, a bot token, a secret key. */
export type AuthMethod = 'oauth2' | 'token' | 'basic' | 'none'

/** What an install holds once it is opened. OAuth uses the keys accessToken, refreshToken, clientId and clientSecret. */
export interface Credential {
  method: AuthMethod
  values: Readonly<Record<string, string>>
  /** When the access token ends, where the vendor said so. */
  expiresMs?: number
}

export interface ConfigKey {
  name: string
  /** Sealed at rest and never shown. */
  secret?: true
  /** The methods that it belongs to; absent: all of them. */
  usedBy?: readonly AuthMethod[]
  /** It works without. */
  optional?: true
  /** What a value must look like, and the words for it. */
  shape?: readonly [pattern: RegExp, expected: string]
}

export type Scalar = string | number | boolean

export interface VendorRequest {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Made with `path`, so that no argument can leave its segment. */
  path: string
  query?: Readonly<Record<string, Scalar | readonly Scalar[] | undefined>>
  headers?: Readonly<Record<string, string>>
  json?: unknown
  form?: Readonly<Record<string, Scalar | undefined>>
}

export interface VendorAnswer {
  status: number
  headers: Headers
  /** Read as JSON; an answer without a body is an empty object. */
  body: unknown
}

/** What an answer says went wrong, whatever its status. */
export interface VendorProblem {
  message: string
  /** The vendor does not take these credentials any more. */
  refused?: boolean
  /** The vendor wants to be asked later. */
  limited?: boolean
  /** How long the vendor wants to be left alone, where no header says so. */
  pauseMs?: number | undefined
  /** It may have been done all the same. */
  unsure?: boolean
}

/** How fast one install may call: so many at a time, and so many started in a second. */
export interface RateRule {
  concurrent: number
  perSecond?: number
}

/** The one way from an action to its vendor. */
export interface Vendor {
  credential: Credential
  send(request: VendorRequest): Promise<VendorAnswer>
}

type ConnectorEffect = 'read' | 'idempotent' | 'once'

export interface Action {
  about: string
  effect: ConnectorEffect
  arguments: z.ZodObject
  /** Other spellings of arguments. */
  aliases: Readonly<Record<string, string>>
  /** Takes arguments that were checked; `next` is the cursor of the following page. */
  run(args: Record<string, unknown>, vendor: Vendor): Promise<{ body: unknown; next?: string | undefined }>
}

export interface Connector {
  id: AnyConnectorId
  name: string
  /** The first is the one that the primary secret stands for. */
  auth: readonly [AuthMethod, ...AuthMethod[]]
  /** The primary secret first. */
  keys: readonly ConfigKey[]
  /** The vendor's origin; `config.baseUrl` takes its place. */
  origin(credential: Credential): string
  /** Of one that is a tenant's own: method and path of an action, as a human is asked about them. */
  lineOf?(action: string): readonly [method: string, path: string]
  /** Stands between the origin and the path of every request. */
  prefix?(credential: Credential): string
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>
  authorize(credential: Credential): Readonly<Record<string, string>>
  /** Reads what an answer says went wrong; vendors that answer errors with 200 are caught here. */
  problem?(body: unknown, status: number, headers: Headers): VendorProblem | undefined
  rate: RateRule
  /** Called to test an install: the cheapest request that needs the credentials. */
  probe: {
    request(credential: Credential): VendorRequest
    /** Whose credentials these are. */
    account?(body: unknown): unknown
    /** A status beside 2xx that also proves that the credentials were taken. */
    alsoGood?: number
  }
  actions: Readonly<Record<string, Action>>
}

const cursor = text(1, 4096).optional()

interface OneRequest<A> {
  request(args: A, credential: Credential): VendorRequest
  /** Of the answer, what is the result; default: its body. */
  result?(answer: VendorAnswer, args: A): unknown
}

interface Described<S extends z.ZodObject> {
  about: string
  effect: ConnectorEffect
  arguments: S
  aliases?: Readonly<Record<string, string>>
}

/** An action that is one request. */
export function action<S extends z.ZodObject>(spec: Described<S> & OneRequest<z.output<S>>): Action {
  return composed({
    ...spec,
    async run(args, vendor) {
      const answer = await vendor.send(spec.request(args, vendor.credential))
      return { body: spec.result ? spec.result(answer, args) : answer.body }
    },
  })
}

/** A list: one request for each page, and the cursor of the next in its answer. */
export function list<S extends z.ZodObject>(
  spec: Omit<Described<S>, 'effect'> &
    OneRequest<z.output<S> & { cursor?: string }> & {
      next(answer: VendorAnswer, args: z.output<S>): string | undefined
    },
): Action {
  return composed({
    ...spec,
    effect: 'read',
    arguments: spec.arguments.extend({ cursor }),
    async run(given, vendor) {
      const args = given as z.output<S> & { cursor?: string }
      const answer = await vendor.send(spec.request(args, vendor.credential))
      return { body: spec.result ? spec.result(answer, args) : answer.body, next: spec.next(answer, args) }
    },
  })
}

/** An action that takes several requests. */
export function composed<S extends z.ZodObject>(
  spec: Described<S> & {
    run(args: z.output<S>, vendor: Vendor): Promise<{ body: unknown; next?: string | undefined }>
  },
): Action {
  const { about, effect, aliases = {} } = spec
  return {
    about,
    effect,
    aliases,
    arguments: spec.arguments,
    run: (args, vendor) => spec.run(args as z.output<S>, vendor),
  }
}
