import type { z } from 'zod'

/** One line for each variable that does not read, with what was expected; secrets are never repeated. */
export class EnvError extends Error {
  override name = 'EnvError'
}

/**
 * Parses a process environment at the door. An empty value counts as unset, as in a shell script that exports a
 * variable it has no value for.
 */
export function readEnv<T extends z.ZodObject>(schema: T, env: Record<string, string | undefined>): z.output<T> {
  const given: Record<string, string> = {}
  for (const name of Object.keys(schema.shape)) {
    const value = env[name]
    if (value !== undefined && value !== '') given[name] = value
  }
  const result = schema.safeParse(given)
  if (result.success) return result.data
  const lines = result.error.issues.map(issue => {
    const name = String(issue.path[0] ?? 'environment')
    const got = SECRET.test(name) || given[name] === undefined ? '' : `, got "${given[name].slice(0, 100)}"`
    return `${name}: ${issue.message}${got}`
  })
  throw new EnvError(lines.join('\n'))
}

const SECRET = /(KEY|KEYS|SECRET|TOKEN|SALT|PASSWORD)$/
