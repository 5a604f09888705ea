import { z } from 'zod'
import { type LogFilter, parseLogFilter } from '../log/log.ts'

/** A log level or filter list from the environment. */
export const logFilter = z.string().transform((text, ctx): LogFilter => {
  const filter = parseLogFilter(text)
  if (filter) return filter
  ctx.addIssue({ code: 'custom', message: 'expected error, warn, info, debug, trace, off, or a list target=level' })
  return z.NEVER
})

/** How a process writes its log; unset, by whether a person reads it. */
export const logFormat = z.enum(['json', 'text'])
