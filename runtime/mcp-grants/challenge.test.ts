import { expect, it } from 'vitest'
import { bearerChallenge } from './discovery.ts'

it.each([
  [null, undefined],
  ['Basic realm="Bearer "', undefined],
  ['Bearer', {}],
  ['bearer realm="x", scope="a b"', { scope: 'a b' }],
  [
    'Bearer error="invalid_token", error_description="no, \\"none\\"", resource_metadata="https://a.example/x?y=1,2"',
    { resourceMetadata: 'https://a.example/x?y=1,2' },
  ],
  [
    'Basic realm="a, b", Bearer scope=read, resource_metadata=https://a.example/x',
    { scope: 'read', resourceMetadata: 'https://a.example/x' },
  ],
  ['Bearer scope="mine", Digest scope="theirs"', { scope: 'mine' }],
])('reads the challenge %j', (header, challenge) => {
  expect(bearerChallenge(header)).toEqual(challenge)
})
