import { z } from 'zod'
import { expected, int, shape, text } from '../bounds.ts'

/** Where a secret's value is kept; the value itself never appears in a manifest. */
export const SECRET_REF = /^secret\/[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const secretRef = shape(SECRET_REF, 'secret/<name>')

export const secrets = z.array(
  z.strictObject({
    env: shape(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'the name of an environment variable'),
    ref: secretRef,
  }),
)

const fromSecret = z.strictObject(
  { secretRef },
  {
    error: ({ code }) =>
      code === 'invalid_type' ? 'expected { "secretRef": "secret/<name>" }: its value comes from a secret' : undefined,
  },
)

const mcpServer = z
  .strictObject({
    name: shape(/^[a-z0-9-]{1,32}$/, "a name of 1 to 32 lower-case letters, digits or '-'"),
    url: z.url({ protocol: /^https?$/, error: expected('an http or https URL') }).optional(),
    command: text(1, 4096).optional(),
    args: z.array(text(0, 131_072)).optional(),
    headers: z.record(shape(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, 'a header name'), fromSecret).optional(),
    allow: z.array(text(1, 128)),
    idempotent: z.array(text(1, 128)).default([]),
    needsApproval: z.boolean().default(false),
    timeoutSeconds: int(1, 3600).default(60),
  })
  .superRefine((server, ctx) => {
    const complain = (path: string, message: string) => ctx.addIssue({ code: 'custom', path: [path], message })
    if (server.url === undefined && server.command === undefined) complain('url', 'expected url or command')
    if (server.url !== undefined && server.command !== undefined) complain('command', 'send url or command, not both')
    if (server.url !== undefined && server.args !== undefined) complain('args', 'args belong to command')
    if (server.command !== undefined && server.headers !== undefined) complain('headers', 'headers belong to url')
  })

export const mcpServers = z.array(mcpServer)
export type McpServer = z.output<typeof mcpServer>

export const MAX_FILES_BYTES = 512 * 1024

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Whether a path stays inside the workspace: relative, no `..`, nothing a shell or a tar would read differently. */
export function isWorkspacePath(path: string): boolean {
  if (path === '' || path.length > 1024 || path.startsWith('/') || path.includes('\\') || path.includes('\0'))
    return false
  return path.split('/').every(part => part !== '' && part !== '.' && part !== '..')
}

/** Bytes of a file once decoded; the encoder's buffer is not kept. */
export function decodedBytes({ content, encoding }: { content: string; encoding: 'utf8' | 'base64' }): number {
  if (encoding === 'utf8') return new TextEncoder().encode(content).byteLength
  const padding = content.endsWith('==') ? 2 : content.endsWith('=') ? 1 : 0
  return (content.length / 4) * 3 - padding
}

const file = z
  .strictObject({
    path: z.string().refine(isWorkspacePath, { error: "expected a relative path without '..'" }),
    content: z.string(),
    encoding: z.enum(['utf8', 'base64']).default('utf8'),
    executable: z.boolean().default(false),
  })
  .refine(({ content, encoding }) => encoding === 'utf8' || BASE64.test(content), {
    path: ['content'],
    error: 'expected base64 with padding',
  })
export type ManifestFile = z.output<typeof file>

export const files = z
  .array(file)
  .max(200)
  .refine(list => list.reduce((sum, item) => sum + decodedBytes(item), 0) <= MAX_FILES_BYTES, {
    error: 'expected at most 512 KiB of decoded files',
  })
