import { z } from 'zod'

/** A comma list whose parts are each read alone; `expected` says in words what a part is. */
export const listOf = <T>(read: (part: string) => T | undefined, expected: string) =>
  z.string().transform((text, ctx): T[] =>
    text.split(',').flatMap(given => {
      const part = given.trim()
      if (part === '') return []
      const value = read(part)
      if (value !== undefined) return [value]
      ctx.addIssue({ code: 'custom', message: `expected ${expected}; "${part}" is none` })
      return []
    }),
  )
