import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const IMAGES = new URL('../../docs/images/', import.meta.url).pathname
const MOST_BYTES = 120_000

/** With WAYBILL_IMAGES=write a test leaves the pictures of the documents. */
export async function picture(page: Page, name: string, mostBytes = MOST_BYTES): Promise<void> {
  if (process.env.WAYBILL_IMAGES !== 'write') return
  await mkdir(IMAGES, { recursive: true })
  const path = join(IMAGES, `${name}.png`)
  await page.screenshot({ path })
  expect((await stat(path)).size, name).toBeLessThanOrEqual(mostBytes)
}
