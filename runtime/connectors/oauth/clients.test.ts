import { expect, it } from 'vitest'
import { readOAuthClients } from './clients.ts'

it('reads the clients of an environment; the four of Google are one', () => {
  const clients = readOAuthClients({
    PLATFORM_OAUTH_GOOGLE_CLIENT_ID: 'g',
    PLATFORM_OAUTH_GOOGLE_CLIENT_SECRET: 's',
    PLATFORM_OAUTH_SLACK_CLIENT_ID: 'x',
    PLATFORM_OAUTH_LINEAR_CLIENT_ID: '',
    OTHER: 'y',
  })
  expect([...clients]).toEqual([
    ['GOOGLE', { id: 'g', secret: 's' }],
    ['SLACK', { id: 'x' }],
  ])
})

it.each([
  [{ PLATFORM_OAUTH_GMAIL_CLIENT_ID: 'x' }, /PLATFORM_OAUTH_GMAIL_CLIENT_ID: expected one of .*GOOGLE/],
  [{ PLATFORM_OAUTH_SLACK_CLIENT_SECRET: 'x' }, /PLATFORM_OAUTH_SLACK_CLIENT_ID: needed/],
  [{ PLATFORM_OAUTH_SLACK_CLIENT_ID: 'a b' }, /printable ASCII/],
])('stops the start at %j', (vars, message) => {
  expect(() => readOAuthClients(vars)).toThrow(message)
})
