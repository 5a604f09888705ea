import { z } from 'zod'

export interface SchemaName {
  /** Component name in the OpenAPI document; unique across both services. */
  id: string
  description?: string
}

/** Our own registry rather than zod's global one, so that two copies of this module never argue over a name. */
export const names = z.registry<SchemaName>()

/** Gives a schema its component name. Registers the schema itself: `.meta()` would clone it, which costs start-up time. */
export function named<T extends z.ZodType>(id: string, schema: T, description?: string): T {
  names.add(schema, description === undefined ? { id } : { id, description })
  return schema
}
