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
    name: 'a',
    comment: '',
    config: { input: { prompt: 'x' }, token: 't' },
    maxRunsPerDay: null,
    maxTokensPerDay: 0,
    notifyAtPct: 80,
    hardFail: false,
    scopes: ['a', 'b'],
    operations: [{ operationId: 'a' }, { operationId: 'b' }],
  })
})

it('reads hosts with their ports, and tells none from a change to none', () => {
  const read = (value: string, as: string) => bodyFrom([{ name: 'hosts', value, as }])
  expect(read('api.example.com\n *.example.com:8443\n[::1]:80, [::2]', 'hosts')).toEqual({
    hosts: [
      { host: 'api.example.com', ports: [443] },
      { host: '*.example.com', ports: [8443] },
      { host: '[::1]', ports: [80] },
      { host: '[::2]', ports: [443] },
    ],
  })
  expect(read('https://a.example', 'hosts')).toEqual({ hosts: [{ host: 'https://a.example', ports: [443] }] })
  expect([read(' ', 'hosts'), read('', 'hosts-or-null')]).toEqual([{}, { hosts: null }])
})

it('says which field does not read', () => {
  const fault = (as: string, value: string) => {
    try {
      return bodyFrom([{ name: 'some.field', value, as }])
    } catch (error) {
      return error
    }
  }
  expect(fault('json', '{')).toMatchObject({
    details: [{ path: 'some.field', message: expect.stringMatching(/^This is not JSON: /) }],
  })
  expect(fault('labels', 'alone')).toMatchObject({
    details: [{ path: 'some.field', message: 'expected key:value, got alone' }],
  })
})

it('sends no number that JSON would make null, which takes a limit away', () => {
  for (const as of ['number', 'limit'])
    for (const value of ['1e309', '-1e309', 'NaN', '0.1+0.2', 'ten', '1,5'])
      expect(() => bodyFrom([{ name: 'maxCostUsdPerDay', value, as }]), value).toThrow(
        'maxCostUsdPerDay: expected a number',
      )
  expect(bodyFrom([{ name: 'n', value: '-0', as: 'limit' }])).toEqual({ n: -0 })
})

it('refuses JSON with a number that would be sent as null', () => {
  const read = (value: string) => bodyFrom([{ name: 'config.input', value, as: 'json' }])
  expect(() => read('{"limit":1e400}')).toThrow('config.input: The number at /limit is too large.')
  expect(read('{"limit":1e308}')).toEqual({ config: { input: { limit: 1e308 } } })
})
