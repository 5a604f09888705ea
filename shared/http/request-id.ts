import { createMiddleware } from 'hono/factory'
import { uuidv7 } from '../ids/uuid-v7.ts'

const ACCEPTED = /^[A-Za-z0-9._-]{1,64}$/

export interface RequestIdEnv {
  Variables: {
    requestId: string
    /** The answer is another server's, and so is its request id. */
    relayed?: boolean
  }
}

/** Every answer carries `x-request-id`; a caller's own value is kept when it is short and plain. */
export function requestId(newId: () => string = uuidv7) {
  return createMiddleware<RequestIdEnv>(async (c, next) => {
    const given = c.req.header('x-request-id')
    const id = given !== undefined && ACCEPTED.test(given) ? given : newId()
    c.set('requestId', id)
    await next()
    if (!c.get('relayed')) c.header('x-request-id', id)
  })
}
