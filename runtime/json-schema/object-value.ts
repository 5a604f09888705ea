import type { AnySchema, Evaluation, Here, Seen, Where } from './evaluation.ts'

type Members = Readonly<Record<string, unknown>>
type Named<T> = Readonly<Record<string, T>>

/** The keywords of objects. */
export function checkObject(run: Evaluation, here: Here<Members>): void {
  const { schema, value, at, wrong } = here
  const names = Object.keys(value)
  const least = schema.minProperties as number | undefined
  const most = schema.maxProperties as number | undefined
  run.spend(names.length)
  requires(run, here, schema.required, name => `Instance does not have required property "${name}".`)
  if (least !== undefined && names.length < least) wrong(() => `Instance does not have at least ${least} properties.`)
  if (most !== undefined && names.length > most) wrong(() => `Instance has more than ${most} properties.`)
  if (schema.propertyNames !== undefined) {
    for (const name of names) {
      const fault = run.check(schema.propertyNames as AnySchema, name, { name, within: at })
      if (fault) wrong(() => `Property name "${name}" does not match schema.`, fault)
    }
  }
  checkDependents(run, here)
  checkMembers(run, here, names)
}

function requires(
  run: Evaluation,
  { value, wrong }: Here<Members>,
  names: unknown,
  say: (name: string) => string,
): void {
  if (!Array.isArray(names)) return
  run.spend(names.length)
  for (const name of names as string[]) if (!Object.hasOwn(value, name)) wrong(() => say(name))
}

function checkDependents(run: Evaluation, here: Here<Members>): void {
  const { schema, value, at, seen, wrong } = here
  for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies']) {
    const held = schema[keyword] as Named<AnySchema | string[]> | undefined
    for (const [name, wanted] of Object.entries(held ?? {})) {
      run.spend(1)
      if (!Object.hasOwn(value, name)) continue
      if (Array.isArray(wanted)) {
        requires(run, here, wanted, other => `Instance has "${name}" but does not have "${other}".`)
        continue
      }
      const own: Seen = new Set()
      const fault = run.check(wanted, value, at, own)
      if (fault) wrong(() => `Instance has "${name}" but does not match dependant schema.`, fault)
      else for (const one of own) seen.add(one)
    }
  }
}

function checkMembers(
  run: Evaluation,
  { schema, value, at, seen, wrong }: Here<Members>,
  names: readonly string[],
): void {
  const covered = new Set<string>()
  const hold = (name: string, inner: AnySchema, say: () => string): void => {
    covered.add(name)
    seen.add(name)
    const place: Where = { name, within: at }
    const fault = run.check(inner, value[name], place)
    if (fault) wrong(say, fault)
  }
  for (const [name, inner] of Object.entries((schema.properties ?? {}) as Named<AnySchema>)) {
    run.spend(1)
    if (Object.hasOwn(value, name)) hold(name, inner, () => `Property "${name}" does not match schema.`)
  }
  for (const [pattern, inner] of Object.entries((schema.patternProperties ?? {}) as Named<AnySchema>)) {
    for (const name of names) {
      if (!run.matches(pattern, name)) continue
      hold(name, inner, () => `Property "${name}" matches pattern "${pattern}" but does not match associated schema.`)
    }
  }
  const rest = schema.additionalProperties as AnySchema | undefined
  if (rest !== undefined) {
    for (const name of names.filter(name => !covered.has(name))) {
      hold(name, rest, () => `Property "${name}" does not match additional properties schema.`)
    }
  }
  const unseen = schema.unevaluatedProperties as AnySchema | undefined
  if (unseen === undefined) return
  for (const name of names.filter(name => !seen.has(name))) {
    hold(name, unseen, () => `Property "${name}" does not match unevaluated properties schema.`)
  }
}
