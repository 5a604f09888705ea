import { describe, expect, it } from 'vitest'
import { credentialFor } from '../config/credential.ts'
import { eligibleRungs, emptyBecause, estimateInputTokens, type RequestNeeds } from './eligible.ts'
import { configOf } from './testing/route-of.ts'

const config = configOf(`[[model]]
id = "anthropic/plain"
tools = false
[[model]]
id = "anthropic/blind"
images = false
[[model]]
id = "anthropic/short"
max_input_tokens = 100
[[provider]]
id = "own"
dialect = "chat"
base_url = "http://localhost:1"
[[provider]]
id = "keyed"
dialect = "chat"
base_url = "https://keyed.example"
api_key_env = "KEYED_KEY"
[[provider]]
id = "cloud"
dialect = "messages"
base_url = "https://cloud.example"
auth = "sigv4"
region = "eu-west-1"
[[route]]
ladder = ["anthropic/plain", "anthropic/blind", "anthropic/short", "openai/other", "anthropic/top"]
`)
const ladder = config.routes[0]!.ladder
const wanted = (over: Partial<RequestNeeds> = {}): RequestNeeds => ({
  hasTools: false,
  hasImages: false,
  inputTokens: 50,
  refusals: () => [],
  heldBy: () => undefined,
  credential: () => 'passthrough',
  ...over,
})

describe('eligibleRungs', () => {
  it('keeps every rung of a plain request', () => {
    expect(eligibleRungs(ladder, wanted())).toEqual({ rungs: [0, 1, 2, 3, 4], dropped: [] })
  })

  it('drops each rung for its own reason and says so', () => {
    const found = eligibleRungs(
      ladder,
      wanted({
        hasTools: true,
        hasImages: true,
        inputTokens: 101,
        refusals: rung => (rung.dialect === 'chat' ? ['top_k', 'thinking'] : []),
        credential: rung => (rung.model === 'anthropic/top' ? 'missing' : 'env'),
      }),
    )
    expect(found.rungs).toEqual([])
    expect(found.dropped.map(({ reason, because }) => [reason, because])).toEqual([
      ['tools', 'the model takes no tools'],
      ['images', 'the model takes no images'],
      ['max_input_tokens', 'the request is about 101 tokens and the model takes 100'],
      ['untranslatable', 'not expressible in the chat dialect: top_k; thinking'],
      ['no_credential', 'no credential for provider anthropic'],
    ])
    expect(emptyBecause(found)).toBe('no_credential')
    expect(emptyBecause({ ...found, dropped: found.dropped.slice(0, 4) })).toBe('untranslatable')
  })

  it('estimates text at four bytes a token and leaves media out', () => {
    expect(estimateInputTokens({ bytes: 401, mediaBytes: 1 })).toBe(100)
  })
})

describe('credentialFor', () => {
  const of = (id: string, api: 'messages' | 'chat', hasKey: boolean, env = {}) =>
    credentialFor(config.providers[id]!, { api, hasKey }, env)

  it('sends the key of a client to built-in providers of the inbound dialect only', () => {
    expect(of('anthropic', 'messages', true)).toBe('passthrough')
    expect(of('anthropic', 'messages', true, { ANTHROPIC_API_KEY: 'x' })).toBe('passthrough')
    expect(of('anthropic', 'chat', true)).toBe('missing')
    expect(of('anthropic', 'chat', true, { ANTHROPIC_API_KEY: 'x' })).toBe('env')
    expect(of('keyed', 'chat', true)).toBe('missing')
  })

  it('falls back on what the router holds', () => {
    expect(of('anthropic', 'messages', false)).toBe('missing')
    expect(of('openai', 'chat', false, { OPENAI_API_KEY: 'x' })).toBe('env')
    expect(of('keyed', 'chat', false, { KEYED_KEY: 'x' })).toBe('env')
    expect(of('keyed', 'chat', false, { KEYED_KEY: '' })).toBe('missing')
    expect(of('own', 'messages', false)).toBe('none')
    expect(of('cloud', 'chat', true)).toBe('missing')
    expect(of('cloud', 'chat', true, { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'y' })).toBe('signed')
  })
})
