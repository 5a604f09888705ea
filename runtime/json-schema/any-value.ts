import type { AnySchema, Evaluation, Fault, Here, Seen } from './evaluation.ts'

/** The keywords that hold for values of every type. */
export function checkAny(run: Evaluation, here: Here<unknown>): void {
  const { schema, value, wrong } = here
  if (Array.isArray(schema.type)) run.spend(schema.type.length)
  const types = schema.type as string | readonly string[] | undefined
  if (types !== undefined && !(Array.isArray(types) ? types : [types]).some(type => isOf(type as string, value))) {
    const expected = Array.isArray(types) ? types.join('", "') : String(types)
    wrong(() => `Instance type "${typeOf(value)}" is invalid. Expected "${expected}".`)
  }
  if ('const' in schema && !run.isIn([schema.const], value, schema)) {
    wrong(() => `Instance does not match ${JSON.stringify(schema.const)}.`)
  }
  const list = schema.enum as readonly unknown[] | undefined
  if (list && !run.isIn(list, value, list)) wrong(() => `Instance does not match any of ${JSON.stringify(list)}.`)
  checkSame(run, here)
}

/** The keywords that hold further schemas against the same value. */
function checkSame(run: Evaluation, { schema, value, at, seen, wrong }: Here<unknown>): void {
  /** What a schema looked at counts only if the value fits it. */
  const held = (inner: AnySchema, counts: Seen = seen): Fault | undefined => {
    const own: Seen = new Set()
    const fault = run.check(inner, value, at, own)
    if (!fault) for (const one of own) counts.add(one)
    return fault
  }
  if (schema.not !== undefined && !held(schema.not as AnySchema, new Set())) {
    wrong(() => 'Instance matched "not" schema.')
  }
  const all = schema.allOf as readonly AnySchema[] | undefined
  const ofAll = all?.map(inner => held(inner)).filter(fault => fault !== undefined)
  if (ofAll && ofAll.length > 0) wrong(() => 'Instance does not match every subschema.', lastOf(ofAll))
  const any = schema.anyOf as readonly AnySchema[] | undefined
  const ofAny = any?.map(inner => held(inner))
  if (ofAny?.every(fault => fault !== undefined)) wrong(() => 'Instance does not match any subschemas.', lastOf(ofAny))
  const one = schema.oneOf as readonly AnySchema[] | undefined
  if (one) {
    const faults = one.map(inner => held(inner)).filter(fault => fault !== undefined)
    const matches = one.length - faults.length
    if (matches !== 1) {
      wrong(() => `Instance does not match exactly one subschema (${matches} matches).`, lastOf(faults))
    }
  }
  if (schema.if === undefined) return
  const branch = held(schema.if as AnySchema) ? 'else' : 'then'
  const fault = schema[branch] === undefined ? undefined : held(schema[branch] as AnySchema)
  if (fault) wrong(() => `Instance does not match "${branch}" schema.`, fault)
}

const lastOf = (faults: readonly (Fault | undefined)[]) => faults.findLast(fault => fault && !fault.bare)

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

const isOf = (type: string, value: unknown) => (type === 'integer' ? Number.isInteger(value) : type === typeOf(value))
