import { it } from 'vitest'
import { answer, scriptedUpstream } from '../upstream/scripted.ts'
import { servedRouter } from './served-routers.ts'
it('x', async () => {
  const up = await scriptedUpstream()
  up.always(answer(200, '{}'))
  const r = await servedRouter({ env: { ROUTER_UPSTREAM_MESSAGES: up.origin }, direct: false })
  const g = await fetch(r.origin + '/v1/messages', { method: 'POST', body: '{}' })
  console.log(g.status, await g.text(), r.logs)
  await r.stop()
  await up.close()
})
