import { Hono } from 'hono'

/** Serves the document, loaded and built on the first request: a start should not pay for its tens of milliseconds. */
export function openapiPage(document: () => Promise<object>) {
  let text: Promise<string> | undefined
  return new Hono().get('/openapi.json', async c => {
    text ??= document().then(JSON.stringify)
    return c.body(await text, 200, { 'content-type': 'application/json' })
  })
}
