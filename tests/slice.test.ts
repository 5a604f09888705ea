import { afterEach, expect, test, vi } from 'vitest'

const ALL = Array.from({ length: 100 }, (_, place) => place)

async function sliced(vars: Record<string, string>, name = 'one', most = 10) {
  vi.resetModules()
  vi.stubEnv('WAYBILL_TEST_FULL', '')
  for (const [key, value] of Object.entries(vars)) vi.stubEnv(key, value)
  return (await import('./slice.ts')).slice(name, ALL, most)
}
afterEach(() => void vi.unstubAllEnvs())

test('a slice is repeated by its seed, keeps the order, and differs by seed and by enumeration', async () => {
  const first = await sliced({ WAYBILL_TEST_SEED: '7' })
  expect(first).toHaveLength(10)
  expect(first).toEqual(first.toSorted((a, b) => a - b))
  expect(await sliced({ WAYBILL_TEST_SEED: '7' })).toEqual(first)
  expect(await sliced({ WAYBILL_TEST_SEED: '8' })).not.toEqual(first)
  expect(await sliced({ WAYBILL_TEST_SEED: '7' }, 'two')).not.toEqual(first)
})

test('every case comes up in some slice, and a full run does them all', async () => {
  const seen = new Set<number>()
  for (let seed = 0; seed < 100; seed++) for (const one of await sliced({ WAYBILL_TEST_SEED: `${seed}` })) seen.add(one)
  expect(seen.size).toBe(100)
  expect(await sliced({ WAYBILL_TEST_FULL: '1' })).toEqual(ALL)
})
