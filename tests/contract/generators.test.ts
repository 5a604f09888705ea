import { describe, expect, it } from 'vitest'
import { servedDocument as routerDocument } from '../../router/openapi-document.ts'
import { servedDocument as runtimeDocument } from '../../runtime/openapi-document.ts'

/** What generators of clients stumble over, though OpenAPI 3.1 allows it. */
describe.each([
  ['router', async () => routerDocument()],
  ['runtime', runtimeDocument],
])('the document of the %s', (_, read) => {
  it('says where it is served, and has no schema that is a boolean where a list names its items', async () => {
    const document = (await read()) as Record<string, unknown>
    expect(document.servers).toEqual([{ url: '/' }])
    expect(JSON.stringify(document)).not.toMatch(/"prefixItems"|"items":(?:true|false)/)
  })
})
