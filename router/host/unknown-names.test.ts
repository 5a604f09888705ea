import { expect, it } from 'vitest'
import { unknownNames } from './unknown-names.ts'

it('names each variable that nothing reads, with the one that was meant', () => {
  const vars = {
    ROUTER_MODEE: 'enforce',
    ROUTER_SOMETHING_ELSE_ALTOGETHER: '1',
    ROUTER_BIND: '127.0.0.1:0',
    PATH: '/bin',
    ROUTER_EMPTY: '',
    ROUTER_LAB_KEY: 'k',
    ROUTER_DB_REPLICA_OF: '',
  }
  expect(unknownNames(vars, 'api_key_env = "ROUTER_LAB_KEY"')).toEqual([
    'ROUTER_MODEE is set, and nothing reads it: did you mean ROUTER_MODE?',
    'ROUTER_SOMETHING_ELSE_ALTOGETHER is set, and nothing reads it',
  ])
})
