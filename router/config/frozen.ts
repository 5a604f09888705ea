/** Values by name, without a prototype: `constructor` and `__proto__` are names like any other. */
export type Named<T> = { readonly [name: string]: T }

export function named<T>(entries: Iterable<readonly [string, T]>): Named<T> {
  const out: Record<string, T> = Object.create(null)
  for (const [name, value] of entries) {
    Object.defineProperty(out, name, { value, enumerable: true, configurable: true, writable: true })
  }
  return out
}

/** Freezes a value and everything in it. */
export function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) freeze(member)
  }
  return value
}
