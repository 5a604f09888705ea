import { expect, it } from 'vitest'
import { ownLimit, TransportError } from './transport.ts'

const failed = (code: string) => Object.assign(new Error(`connect ${code}`), { code, syscall: 'connect' })
const of = (cause: Error) => ownLimit(new TransportError('the upstream could not be reached', { cause }))

it('is the own limit where no address of the upstream was refused for another reason', () => {
  expect(of(failed('EMFILE'))).toContain('(EMFILE)')
  expect(of(new AggregateError([failed('EMFILE'), failed('EMFILE')]))).toContain('(EMFILE)')
  expect(of(new AggregateError([failed('EMFILE'), failed('ECONNREFUSED')]))).toBeUndefined()
  for (const code of ['EADDRNOTAVAIL', 'ECONNREFUSED', 'ENETUNREACH']) expect(of(failed(code)), code).toBeUndefined()
})
