import { nearest } from '../wire/nearest.ts'

/** Variables that look like settings of a service and that nothing reads: most often a name that was mistyped. */
export function unreadNames(
  vars: Readonly<Record<string, string | undefined>>,
  { prefix, known }: { prefix: string; known: ReadonlySet<string> },
): string[] {
  return Object.keys(vars)
    .filter(name => name.startsWith(prefix) && vars[name] && !known.has(name))
    .map(name => {
      const near = nearest(name, known)
      return `${name} is set, and nothing reads it${near === undefined ? '' : `: did you mean ${near}?`}`
    })
}
