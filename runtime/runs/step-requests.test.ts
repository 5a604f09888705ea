import { expect, it } from 'vitest'
import { sha256 } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import { clearRecords } from '../vault/records.ts'
import { stepRequests } from './step-requests.ts'

it('reads the journals of two runs at a time, in the order of the calls, and goes on after one that failed', async () => {
  const asked: string[] = []
  const answers: ((failed?: Error) => void)[] = []
  const requests = stepRequests({
    db: {} as Db,
    records: clearRecords,
    sha256,
    runs: {
      get: async () => undefined,
      progress: async () => undefined,
      events: async () => [],
      page(runId) {
        asked.push(runId)
        return new Promise((resolve, reject) => {
          answers.push(failed => (failed ? reject(failed) : resolve({ entries: [], isLast: true })))
        })
      },
    },
    getVersion: async () => undefined,
    turnAsItWas: async () => undefined,
  })
  const turn = () => new Promise<void>(resolve => setImmediate(resolve))
  const ends = ['a', 'b', 'c', 'd'].map(runId => requests.of(runId, 'model-1').catch((error: Error) => error.message))
  await turn()
  expect(asked).toEqual(['a', 'b'])
  answers[0]!(new Error('the store is away'))
  await turn()
  expect(asked).toEqual(['a', 'b', 'c'])
  answers[1]!()
  await turn()
  for (const answer of answers.slice(2)) answer()
  expect(await Promise.all(ends)).toEqual(['the store is away', undefined, undefined, undefined])
  expect(asked).toEqual(['a', 'b', 'c', 'd'])
})
