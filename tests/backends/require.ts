import { test } from 'vitest'

/**
 * Whether tests of an optional backend run here. Without it they are skipped with a line that says how to get it; where
 * WAYBILL_TEST_REQUIRE names it (a comma list, or `all`), its absence is a failing test instead.
 */
export function requireBackend(name: string, available: boolean, howToInstall: string): boolean {
  if (available) return true
  if (isRequired(name, process.env.WAYBILL_TEST_REQUIRE)) {
    test(`the backend ${name} is here, because WAYBILL_TEST_REQUIRE asks for it`, () => {
      throw new Error(`${name} is missing. To install it: ${howToInstall}`)
    })
  } else {
    process.stderr.write(`\nSKIPPED: tests that need ${name}. To install it: ${howToInstall}\n\n`)
    test.skip(`needs ${name}: ${howToInstall}`, () => {})
  }
  return false
}

export function isRequired(name: string, list: string | undefined): boolean {
  const wanted = (list ?? '').split(',').map(entry => entry.trim())
  return wanted.includes('all') || wanted.includes(name)
}
