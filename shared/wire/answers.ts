import type { z } from 'zod'

/** Short forms for the answers of an endpoint; generic, so that the schema's type survives. */
export const ok = <T extends z.ZodType>(schema: T, description = 'Done.') => ({ 200: { description, schema } }) as const

export const created = <T extends z.ZodType>(schema: T, description = 'Created.') =>
  ({ 201: { description, schema } }) as const

export const noContent = { 204: { description: 'Done; no body.' } } as const

const nextPage = 'The next page as `<…>; rel="next"`, when more rows exist.'

/** A bare array, newest first, with Link paging. */
export const listOf = <T extends z.ZodType>(schema: T, description = 'Newest first.') =>
  ({ 200: { description, schema, headers: { Link: nextPage } } }) as const

/** Server-Sent Events that end; the schema is that of one `data:` line. */
export const streamToEnd = <T extends z.ZodType>(schema: T, description: string) =>
  ({
    200: { description, schema, contentType: 'text/event-stream' },
    204: { description: 'Everything up to the end was sent before `Last-Event-ID`: nothing more will come.' },
  }) as const
