import { expect, it } from 'vitest'
import { scriptedUpstream } from '../upstream/scripted.ts'
import { servedRouter } from './served-routers.ts'

const routed = (base: string) => `
price = [{ model = "openai/o", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "openai", dialect = "chat", base_url = "${base}", auth = "none" }]
[[route]]
mode = "enforce"
ladder = ["openai/o"]
gates = ["non-empty"]
`

it.each([
  ['observed', false, null],
  ['routed', true, expect.any(Number)],
])(
  'a call that a stop cuts while it waits is one that its client left, and may have been billed: %s',
  async (_, isRouted, cost) => {
    const upstream = await scriptedUpstream()
    try {
      const base = `${upstream.origin}/v1`
      const sent = Promise.withResolvers<void>()
      upstream.always(() => sent.resolve())
      const router = await servedRouter({
        env: { ROUTER_UPSTREAM_CHAT: base },
        ...(isRouted && { config: routed(base) }),
      })
      const body = JSON.stringify({ model: 'o', messages: [{ role: 'user', content: 'hi' }] })
      const headers = { 'content-type': 'application/json' }
      const call = fetch(`${router.origin}/v1/chat/completions`, { method: 'POST', headers, body })
      const ended = expect(call).rejects.toThrow()
      await sent.promise
      const { receipts } = await router.stop()
      await ended
      expect(receipts.map(({ final }) => [final.status, final.served_from, final.total_cost_usd])).toEqual([
        [499, 'aborted', cost],
      ])
      expect(receipts[0]?.final.total_cost_usd).not.toBe(0)
    } finally {
      await upstream.close()
    }
  },
)
