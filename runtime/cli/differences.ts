export interface Difference {
  path: string
  before?: unknown
  after?: unknown
}

/** The members that two values do not have alike, by their path; a list is compared as a whole. */
export function differences(before: unknown, after: unknown, path = ''): Difference[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (!isObject(before) || !isObject(after)) return [{ path, before, after }]
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  return names.flatMap(name => differences(before[name], after[name], path === '' ? name : `${path}.${name}`))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
