import { serve } from '@hono/node-server'
import { Hono } from 'hono'

/** Hono with the global fetch, body and answer passed as streams. */
const app = new Hono().all('*', c => {
  const url = new URL(c.req.url)
  const headers = new Headers(c.req.raw.headers)
  headers.delete('host')
  headers.delete('connection')
  headers.delete('content-length')
  const init = { method: c.req.method, headers, body: c.req.raw.body, duplex: 'half' } as RequestInit
  return fetch(process.env.UPSTREAM + url.pathname, init)
})
serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })
