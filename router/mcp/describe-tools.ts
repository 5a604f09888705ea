import { z } from 'zod'
import { mcpTools } from '../../shared/wire/router/mcp.ts'

interface ObjectSchema {
  [key: string]: unknown
  type: 'object'
}

export interface ToolDescription {
  [key: string]: unknown
  name: string
  description: string
  inputSchema: ObjectSchema
  outputSchema: ObjectSchema
  annotations: { readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean; openWorldHint: boolean }
}

/**
 * The answer to `tools/list`. Schemas are of draft 7, which the official clients' validators read without being told.
 * Reported twice, an outcome counts once; nothing leaves the machine.
 */
export function describeTools(): ToolDescription[] {
  return Object.entries(mcpTools).map(([name, { description, input, output, readOnly }]) => ({
    name,
    description,
    inputSchema: objectSchema(input, 'input'),
    outputSchema: objectSchema(output, 'output'),
    annotations: { readOnlyHint: readOnly, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  }))
}

function objectSchema(schema: z.ZodType, io: 'input' | 'output'): ObjectSchema {
  const json = z.toJSONSchema(schema, {
    io,
    target: 'draft-7',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const { def } = zodSchema._zod
      // zod drops unknown keys of a plain object and so calls its output closed; answers may grow.
      if (def.type === 'object' && def.catchall === undefined) delete jsonSchema.additionalProperties
    },
  })
  return { ...json, type: 'object' }
}
