import { expect, it } from 'vitest'
import { storeFault, storeFaults } from './store-faults.ts'

const coded = (code: string) => Object.assign(new Error('no'), { code })

it('has a sentence for a disk that is full, failing or read-only and a damaged file, also where another error wraps them, and for nothing else', () => {
  expect(storeFault(coded('SQLITE_FULL'))).toMatch(/disk of the store is full/)
  expect(storeFault(new Error('outer', { cause: coded('SQLITE_CORRUPT') }))).toMatch(/damaged/)
  for (const code of ['SQLITE_IOERR', 'SQLITE_READONLY'])
    expect(storeFault(coded(code))).toMatch(/a quota on it is used up, or its file system has become read-only/)
  for (const other of [coded('SQLITE_BUSY'), coded('SQLITE_CONSTRAINT'), new Error('no'), undefined]) {
    expect(storeFault(other)).toBeUndefined()
  }
})

it('forgets a full disk after a while, and damage never', () => {
  let nowMs = 0
  const faults = storeFaults(() => nowMs)
  expect(faults.current).toBeUndefined()
  faults.note(coded('SQLITE_FULL'))
  expect(faults.current).toMatch(/full/)
  nowMs = 29_999
  expect(faults.current).toMatch(/full/)
  nowMs = 30_000
  expect(faults.current).toBeUndefined()
  faults.note(coded('SQLITE_NOTADB'))
  faults.note(coded('SQLITE_FULL'))
  nowMs = 1e9
  expect(faults.current).toMatch(/damaged/)
})
