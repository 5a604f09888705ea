import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

/** It is put in over the protocol, which the page's policy does not concern. */
const AXE = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** How each page is seen: elements are the same in the dark and on a wide screen, where only colours and places differ. */
export const LOOKS = [
  { name: 'light', width: 1440, height: 900, scheme: 'light', rules: undefined },
  { name: 'dark', width: 1440, height: 900, scheme: 'dark', rules: ['color-contrast'] },
  { name: 'wide', width: 1920, height: 1080, scheme: 'light', rules: ['color-contrast'] },
  { name: 'wide-dark', width: 1920, height: 1080, scheme: 'dark', rules: ['color-contrast'] },
  { name: 'phone', width: 375, height: 800, scheme: 'light', rules: undefined },
  { name: 'phone-dark', width: 375, height: 800, scheme: 'dark', rules: ['color-contrast'] },
] as const

/** Whatever axe finds in a page, of any weight. To write down all that is good takes longer than to find what is not; there are no films to load. */
export async function violations(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(await AXE)
  return page.evaluate(async only => {
    interface Result {
      id: string
      nodes: { html: string }[]
    }
    const { axe } = globalThis as unknown as { axe: { run: (options: object) => Promise<{ violations: Result[] }> } }
    const brief = { resultTypes: ['violations'], preload: false }
    const { violations } = await axe.run(only === undefined ? brief : { ...brief, runOnly: only })
    return violations.map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .map(({ html }) => html.slice(0, 160))
          .slice(0, 5)
          .join(' | ')} (${nodes.length})`,
    )
  }, rules)
}

/** What is wrong with a page in any of its looks: wider than the screen, or what axe finds; `seen` is called in each. */
export async function wrongIn(
  page: Page,
  seen: (look: string) => Promise<unknown> = async () => {},
): Promise<string[]> {
  const wrong: string[] = []
  for (const { name, width, height, scheme, rules } of LOOKS) {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme: scheme })
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    if (over > 0) wrong.push(`${name}: ${over} px too wide`)
    wrong.push(...(await violations(page, rules)).map(one => `${name}: ${one}`))
    await seen(name)
  }
  return wrong
}
