import type { AnySchema, Evaluation, Here } from './evaluation.ts'

/** The keywords of arrays. */
export function checkArray(run: Evaluation, here: Here<readonly unknown[]>): void {
  const { schema, value, wrong } = here
  const { length } = value
  const least = schema.minItems as number | undefined
  const most = schema.maxItems as number | undefined
  run.spend(length)
  if (most !== undefined && length > most) wrong(() => `Array has too many items (${length} > ${most}).`)
  if (least !== undefined && length < least) wrong(() => `Array has too few items (${length} < ${least}).`)
  checkItems(run, here)
  checkContained(run, here)
  checkUnseen(run, here)
  if (schema.uniqueItems === true) checkUnique(run, here)
}

function checkItems(run: Evaluation, { schema, value, at, seen, wrong }: Here<readonly unknown[]>): void {
  // A list in `items` is what `prefixItems` was called before.
  const lists = [schema.prefixItems, schema.items].filter(one => Array.isArray(one)) as (readonly AnySchema[])[]
  const [rest, keyword] = Array.isArray(schema.items)
    ? [schema.additionalItems, 'additional items']
    : [schema.items, 'items']
  const first = lists[0] ?? []
  for (const [n, item] of value.entries()) {
    const inner = n < first.length ? first[n] : (rest as AnySchema | undefined)
    if (inner === undefined) break
    seen.add(n)
    const fault = run.check(inner, item, { name: n, within: at })
    if (fault)
      wrong(
        () => (keyword === 'items' ? 'Items did not match schema.' : `Items did not match ${keyword} schema.`),
        fault,
      )
  }
}

function checkContained(run: Evaluation, { schema, value, at, seen, wrong }: Here<readonly unknown[]>): void {
  if (schema.contains === undefined) return
  const least = (schema.minContains as number | undefined) ?? 1
  const most = (schema.maxContains as number | undefined) ?? Infinity
  let contained = 0
  for (const [n, item] of value.entries()) {
    if (run.check(schema.contains as AnySchema, item, { name: n, within: at })) continue
    contained++
    seen.add(n)
  }
  if (contained < least) {
    wrong(() => `Array has too few items that match the "contains" schema (${contained} < ${least}).`)
  }
  if (contained > most) {
    wrong(() => `Array has too many items that match the "contains" schema (${contained} > ${most}).`)
  }
}

function checkUnseen(run: Evaluation, { schema, value, at, seen, wrong }: Here<readonly unknown[]>): void {
  if (schema.unevaluatedItems === undefined) return
  for (const [n, item] of value.entries()) {
    if (seen.has(n)) continue
    seen.add(n)
    const fault = run.check(schema.unevaluatedItems as AnySchema, item, { name: n, within: at })
    if (fault) wrong(() => 'Items did not match unevaluated items schema.', fault)
  }
}

function checkUnique(run: Evaluation, { value, wrong }: Here<readonly unknown[]>): void {
  const first = new Map<string, number>()
  for (const [n, item] of value.entries()) {
    const key = run.keyOf(item)
    const before = first.get(key)
    if (before !== undefined) {
      wrong(() => `Duplicate items at indexes ${before} and ${n}.`)
      return
    }
    first.set(key, n)
  }
}
