import { z } from 'zod'
import { int, shape } from '../bounds.ts'

const HOST =
  /^(\*\.)?([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$|^\[[0-9A-Fa-f:.]+\]$/

/** A host, or every name below one, with the ports that are meant. */
export const hostRule = z.strictObject(
  {
    host: shape(HOST, 'a host name or *.example.com')
      .max(253)
      .transform(host => host.toLowerCase())
      .pipe(z.string()),
    ports: z.array(int(1, 65_535)).min(1).max(100).default([443]),
  },
  { error: ({ code }) => (code === 'invalid_type' ? 'expected { "host": "api.example.com" }' : undefined) },
)
export type HostRule = z.infer<typeof hostRule>
