import { expect, it } from 'vitest'
import { bodyFrom } from './form-body.ts'

it('makes the body that an operation takes: members in members, numbers, flags, lists and JSON', () => {
  const field = (name: string, value: string, as = '') => ({ name, value, as })
  expect(
    bodyFrom([
      field('name', 'a'),
      field('title', ''),
      field('comment', '', 'text'),
      field('config.input', '{"prompt":"x"}', 'json'),
      field('config.token', 't'),
      field('maxRunsPerDay', '', 'limit'),
      field('maxTokensPerDay', '0', 'limit'),
      field('notifyAtPct', '80', 'number'),
      field('hardFail', 'false', 'flag'),
      field('scopes', 'a', 'many'),
      field('scopes', 'b', 'many'),
      field('operations', '{"operationId":"a"}', 'many-json'),
      field('operations', '{"operationId":"b"}', 'many-json'),
    ]),
  ).toEqual({
    ...{
      name: 'a',
      comment: '',
      config: { input: { prompt: 'x' }, token: 't' },
      maxRunsPerDay: null,
      maxTokensPerDay: 0,
    },
    ...{
      notifyAtPct: 80,
      hardFail: false,
      scopes: ['a', 'b'],
      operations: [{ operationId: 'a' }, { operationId: 'b' }],
    },
  })
})

it('says which field is not JSON', () => {
  expect(() => bodyFrom([{ name: 'input', value: '{', as: 'json' }])).toThrow(/^input is not JSON: /)
})
