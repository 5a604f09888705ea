import { expect, test } from 'vitest'
import { isRequired } from './require.ts'

test.each([
  [undefined, false],
  ['', false],
  ['kvm', false],
  ['all', true],
  ['kvm, sqld', true],
])('with WAYBILL_TEST_REQUIRE=%s sqld is required: %s', (list, expected) => {
  expect(isRequired('sqld', list)).toBe(expected)
})
