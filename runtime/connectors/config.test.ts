import { describe, expect, it } from 'vitest'
import { catalogue } from './catalogue.ts'
import { readConfig } from './config.ts'

const slack = (config: Record<string, unknown>) => readConfig(catalogue.slack, config)

describe('a config', () => {
  it.each(['token', 'apiKey', 'accessToken', 'botToken'])('may call the primary secret %s', name => {
    expect(slack({ [name]: 'xoxb-1' })).toEqual({
      credential: { method: 'token', values: { botToken: 'xoxb-1' } },
      baseUrl: undefined,
      missing: [],
      warnings: [],
    })
  })

  it('is of OAuth when it says so, or holds what only OAuth has', () => {
    const oauth = { accessToken: 'a', refreshToken: 'r', clientId: 'c', clientSecret: 's' }
    expect(slack(oauth).credential).toEqual({ method: 'oauth2', values: oauth })
    expect(slack({ authMethod: 'oauth2', accessToken: 'a' }).credential).toEqual({
      method: 'oauth2',
      values: { accessToken: 'a' },
    })
    expect(slack({ refreshToken: 'r', clientId: 'c' }).missing).toEqual(['accessToken'])
    expect(slack({ ...oauth, expiresAt: '2026-01-02T03:04:05Z' }).credential.expiresMs).toBe(1767323045000)
  })

  it('says what is missing, by the way of signing in', () => {
    expect(slack({}).missing).toEqual(['botToken'])
    expect(readConfig(catalogue.jira, { apiToken: 't' }).missing).toEqual(['email', 'domain'])
    expect(readConfig(catalogue.jira, { accessToken: 'a', refreshToken: 'r' }).missing).toEqual(['cloudId'])
    expect(readConfig(catalogue.twilio, { token: 't', accountSid: 'AC1' }).missing).toEqual([])
    expect(readConfig(catalogue.gmail, { token: 't' }).credential.values).toEqual({ accessToken: 't' })
    expect(readConfig(catalogue.salesforce, { accessToken: 'a' }).missing).toEqual(['instanceUrl'])
  })

  it('warns of what it does not know and of what it does not use, and keeps neither', () => {
    const { credential, warnings } = slack({ botToken: 'x', clientId: 'c', signingSecret: 's', accessToken: 'a' })
    expect(credential.values).toEqual({ botToken: 'x' })
    expect(warnings).toEqual([
      'config.signingSecret is not a key of slack and was not stored',
      'config.clientId is not used with token and was not stored',
    ])
  })

  it.each([
    [{ botToken: { a: 1 } }, 'config.botToken: expected a string'],
    [{ botToken: 'a\nb' }, 'config.botToken: expected printable ASCII characters'],
    [{ botToken: '***' }, 'config.botToken: *** stands for it in answers: send the value itself'],
    [{ botToken: 'x', authMethod: 'basic' }, 'config.authMethod: expected one of token, oauth2'],
    [{ botToken: 'x', expiresAt: 'soon' }, 'config.expiresAt: expected an ISO 8601 time with a zone'],
    [{ botToken: 'x'.repeat(8193) }, 'config.botToken: expected at most 8192 characters'],
  ])('is refused where a value cannot be meant: %j', (config, message) => {
    expect(() => slack(config as Record<string, unknown>)).toThrow(message)
  })

  it('does not let a key out of its place', () => {
    expect(() => readConfig(catalogue.telegram, { botToken: '1:a/../../x' })).toThrow('expected a bot token')
    expect(() => readConfig(catalogue.jira, { domain: 'a.example/x?y' })).toThrow('expected a site')
    expect(() => readConfig(catalogue.twilio, { accountSid: '../x' })).toThrow('expected an account SID')
  })
})

describe('where a connector is reached', () => {
  it.each([
    ['acme', 'https://acme.atlassian.net'],
    ['acme.atlassian.net', 'https://acme.atlassian.net'],
    ['https://jira.acme.example/', 'https://jira.acme.example'],
  ])('a Jira site may be called %s', (domain, origin) => {
    const { credential } = readConfig(catalogue.jira, { apiToken: 't', email: 'a@b.example', domain })
    expect(catalogue.jira.origin(credential)).toBe(origin)
  })

  it('an OAuth token of Jira goes to the gateway of its site', () => {
    const { credential } = readConfig(catalogue.jira, { accessToken: 'a', refreshToken: 'r', cloudId: 'c-1' })
    const { origin, prefix, authorize } = catalogue.jira
    expect([origin(credential), prefix?.(credential), authorize(credential)]).toEqual([
      ...['https://api.atlassian.com', '/ex/jira/c-1', { authorization: 'Bearer a' }],
    ])
  })

  it('OAuth tokens are bearers where other tokens are not', () => {
    const oauth = { authMethod: 'oauth2', accessToken: 'a' }
    for (const id of ['discord', 'linear'] as const) {
      const { credential } = readConfig(catalogue[id], oauth)
      expect(catalogue[id].authorize(credential)).toEqual({ authorization: 'Bearer a' })
    }
  })
})
