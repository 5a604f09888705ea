import { createMiddleware } from 'hono/factory'
import { uuidv7 } from '../ids/uuid-v7.ts'

const ACCEPTED = /^[A-Za-z0-9._-]{1,64}$/

export interface RequestIdEnv {
  Variables: {
    requestId: string
  }
}

/** A caller's own value where it is short and plain, else a new one. */
export function requestIdOf(given: string | undefined, newId: () => string = uuidv7): string {
  return given !== undefined && ACCEPTED.test(given) ? given : newId()
}

/** Every answer carries `x-request-id`; a caller's own value is kept when it is short and plain. */
export function requestId() {
  return createMiddleware<RequestIdEnv>(async (c, next) => {
    const id = requestIdOf(c.req.header('x-request-id'), uuidv7)
    c.set('requestId', id)
    await next()
    c.header('x-request-id', id)
  })
}
