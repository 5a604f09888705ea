import { expect, it } from 'vitest'
import type { Tried } from './receipt.ts'
import { sessions } from './sessions.ts'

const served = { rung: { rung: 1 }, tokens: null } as Tried

it('keeps the sessions of a quiet tenant while another one opens as many as it likes', () => {
  const all = sessions(() => 0)
  all('quiet', 'r', 's').served({ served })
  for (let n = 0; n < 70_000; n++) all('loud', 'r', String(n)).served({ served })
  expect(all('quiet', 'r', 's').find()).toMatchObject({ lastServedRung: 1, turn: 2 })
  expect(all('loud', 'r', '69999').find()).toBeDefined()
  expect(all('loud', 'r', '49999').find()).toBeUndefined()
  expect(all('loud', 'r', '50000').find()).toBeDefined()
})

it('forgets the tenant that was quiet longest when all of them together have too many', () => {
  const all = sessions(() => 0)
  all('first', 'r', 's').served({ served })
  for (let n = 0; n < 50_000; n++) all(`t${n % 5}`, 'r', String(n)).served({ served })
  expect(all('first', 'r', 's').find()).toBeUndefined()
  expect(all('t0', 'r', '0').find()).toBeDefined()
})
