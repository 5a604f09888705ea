import { raw } from 'hono/html'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import type { Html } from './page.ts'

export interface Fragment {
  body: Html
  etag: string
}

const FRESH_MS = 2000
const MOST = 200

/**
 * Parts of pages that are drawn once for all who may see the same. The key has to name everything that decides what they may see.
 */
export function sharedFragments(monotonic: () => number) {
  const made = new Map<string, { untilMs: number; fragment: Promise<Fragment> }>()

  async function draw(render: () => Promise<Html>): Promise<Fragment> {
    const text = String(await render())
    return { body: raw(text), etag: `"${sha256Hex(text).slice(0, 24)}"` }
  }

  return {
    get(key: string, render: () => Promise<Html>): Promise<Fragment> {
      const nowMs = monotonic()
      const known = made.get(key)
      if (known && known.untilMs > nowMs) return known.fragment
      const fragment = draw(render)
      const entry = { untilMs: nowMs + FRESH_MS, fragment }
      made.delete(key)
      const [oldest] = made.keys()
      if (made.size >= MOST && oldest !== undefined) made.delete(oldest)
      made.set(key, entry)
      fragment.catch(() => made.get(key) === entry && made.delete(key))
      return fragment
    },
  }
}
