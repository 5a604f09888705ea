import { expect, it } from 'vitest'
import { runtimeEndpoints } from '../../shared/wire/runtime/endpoints.ts'
import { api } from './api.ts'

it('shows every operation to people, without a key, without a script, and with every link leading somewhere', async () => {
  const on = await api()
  try {
    const answer = await on.runtime.fetch(new Request('http://localhost/docs'))
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8'])
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    const page = await answer.text()
    for (const { id, path, method } of runtimeEndpoints) {
      expect(page, id).toContain(`<details id="${id}">`)
      expect(page).toContain(`<b>${method}</b> <code>${path}</code>`)
    }
    expect(page).not.toContain('<script')
    // A browser asks for an icon in any case; one that the policy refuses is a complaint in Firefox.
    const [, icon = ''] = /<link rel="icon" href="([^"]+)"/.exec(page) ?? []
    expect((await on.runtime.fetch(new Request(`http://localhost/${icon}`))).status).toBe(200)
    expect(answer.headers.get('content-security-policy')).toContain("img-src 'self'")
    const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))
    for (const [, to] of page.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(to)
  } finally {
    await on.close()
  }
})
