import { z } from 'zod'
import type { CustomId } from '../../../shared/wire/runtime/catalog.ts'
import { type SchemaCheck, schemaCheckOrRefusal } from '../../json-schema/schema-check.ts'
import type { Action, AuthMethod, ConfigKey, Connector, VendorAnswer } from '../definition.ts'
import { nextParameter } from '../link-header.ts'
import { VendorFailure } from '../vendor-failure.ts'
import type { CompiledApi, Operation } from './compiled.ts'
import { type Json, member } from './document.ts'
import { requestOf } from './request.ts'

/** Few at a time: how many a stranger takes is not known. */
const RATE = { concurrent: 10 }

/** A connector of the same shape as those of the catalogue, from what an install kept of its document. */
export function customConnector(id: CustomId, api: CompiledApi): Connector {
  const keys = keysOf(api)
  const secrets = keys.filter(({ secret }) => secret)
  const basic = secrets[0]?.name === 'password'
  const method: AuthMethod = secrets.length === 0 ? 'none' : basic ? 'basic' : 'token'
  const probe = api.operations.find(({ name }) => name === api.probe)
  return {
    id,
    name: api.title,
    auth: [method],
    keys,
    rate: api.rate ?? RATE,
    origin: () => api.server ?? '',
    // Each operation has its own.
    authorize: () => ({}),
    probe: {
      request(credential) {
        if (probe) return requestOf(api, probe, {}, credential)
        const message = 'none of the chosen operations reads without arguments, so nothing can be tried'
        throw new VendorFailure({ message, declined: true })
      },
    },
    actions: Object.fromEntries(api.operations.map(operation => [operation.name, actionOf(api, operation)])),
  }
}

/** Secrets first, so that `token` and `apiKey` mean the first of them. */
function keysOf({ schemes }: CompiledApi): ConfigKey[] {
  const all = Object.values(schemes)
  const basic = all.some(({ kind }) => kind === 'basic')
  return [
    ...all.flatMap((scheme): ConfigKey[] => (scheme.kind === 'basic' ? [] : [{ name: scheme.key, secret: true }])),
    ...(basic ? [{ name: 'password', secret: true } as const, { name: 'username' }] : []),
  ]
}

function actionOf(api: CompiledApi, operation: Operation): Action {
  const { about, effect, parameters, body, pages, result } = operation
  const shape: Record<string, z.ZodType> = {}
  for (const { argument, schema, required } of parameters) shape[argument] = argumentOf(schema, required)
  if (body) shape.body = argumentOf(body.schema, body.required)
  if (pages) shape.cursor = z.string().min(1).max(4096).optional()
  return {
    about,
    effect,
    aliases: {},
    arguments: z.object(shape),
    async run(args, vendor) {
      const answer = await vendor.send(requestOf(api, operation, args, vendor.credential))
      const next = pages && nextOf(pages, answer)
      return { body: result === undefined ? answer.body : at(answer.body, result), ...(next !== undefined && { next }) }
    },
  }
}

function nextOf({ parameter, next }: NonNullable<Operation['pages']>, { body, headers }: VendorAnswer) {
  if (next === undefined) return nextParameter(parameter, headers)
  const found = at(body, next)
  return (typeof found === 'string' && found !== '') || typeof found === 'number' ? String(found) : undefined
}

/** What a JSON Pointer leads to; nothing where there is nothing. */
function at(body: unknown, pointer: string): unknown {
  const names = pointer.split('/').slice(1)
  const found = names.reduce<unknown>(
    (from, name) => member(from, name.replaceAll('~1', '/').replaceAll('~0', '~')),
    body,
  )
  return found ?? {}
}

/** The type is zod's, so that texts of numbers are understood as in every connector; the rest is held by the JSON Schema. */
function argumentOf(schema: Json, required: boolean): z.ZodType {
  let check: SchemaCheck | undefined
  const fits = (value: unknown, ctx: z.RefinementCtx) => {
    if (value === undefined) {
      if (required) ctx.addIssue({ code: 'custom', message: 'Required' })
      return
    }
    check ??= schemaCheckOrRefusal(schema)
    const fault = check(value)
    if (fault) ctx.addIssue({ code: 'custom', path: fault.at.split('/').slice(1), message: fault.message })
  }
  const typed = typeOf(schema)
    .superRefine(fits)
    .meta({ ...schema })
  return required ? typed : typed.optional()
}

function typeOf({ type }: Json): z.ZodType {
  switch (type) {
    case 'string':
      return z.string()
    case 'number':
    case 'integer':
      return z.number()
    case 'boolean':
      return z.boolean()
    case 'array':
      return z.array(z.unknown())
    default:
      return z.unknown()
  }
}
