import { expect, it } from 'vitest'
import { newTraceIdList, pushTraceId, traceIdSet } from './trace-ids.ts'

const listOf = (ids: readonly string[]) => {
  const list = newTraceIdList()
  for (const id of ids) pushTraceId(list, id)
  return list
}

it('a set of trace ids knows each of many again, however often it has grown', () => {
  const ids = Array.from({ length: 50_000 }, () => crypto.randomUUID())
  const set = traceIdSet()
  expect(set.addAll(listOf(ids))).toBeUndefined()
  for (const known of [0, 16_383, 16_384, 32_768, 49_999]) {
    expect(set.addAll(listOf([crypto.randomUUID(), ids[known]!]))).toBe(1)
  }
})
