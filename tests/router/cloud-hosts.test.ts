import { createHash, createHmac, createPublicKey, createVerify, generateKeyPairSync } from 'node:crypto'
import { crc32 } from 'node:zlib'
import Anthropic from '@anthropic-ai/sdk'
import { describe, expect, it } from 'vitest'
import { messagesAnswer, messagesFrames } from '../upstream/answers.ts'
import { answer, type Script, type ScriptedUpstream, type Seen } from '../upstream/scripted.ts'
import { type TestRouter, testRouter, upstreamPerTest } from './routers.ts'

const AWS = {
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI/K7MDENG',
  AWS_SESSION_TOKEN: 'tok',
}
const MODEL = 'anthropic.claude-haiku-4-5-v1:0'

let upstream: ScriptedUpstream
let running: TestRouter | undefined
upstreamPerTest(made => {
  upstream = made
  return () => running?.close()
})

const config = (provider: string, model: string) => `
price = [{ model = "${model}", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [${provider}]
[[route]]
match = {}
mode = "enforce"
ladder = ["${model}"]
gates = ["non-empty"]
`
const start = async (provider: string, model: string, env: Record<string, string>) => {
  running = await testRouter({ config: config(provider, model), env })
  return running
}
const bedrock = () =>
  `{ id = "aws", dialect = "messages", base_url = "${upstream.origin}", auth = "sigv4", region = "eu-west-1" }`
const client = ({ router }: TestRouter) =>
  new Anthropic({
    apiKey: 'sk-client-key',
    baseURL: 'http://router',
    maxRetries: 0,
    fetch: (input, init) => router.fetch(new Request(input as string, init)) as Promise<Response>,
  })
const ask = { model: 'auto', max_tokens: 50, messages: [{ role: 'user' as const, content: 'hi' }] }

describe('a host that wants signed requests', () => {
  it('gets its own address and body, signed over the bytes that it received', async () => {
    const running = await start(bedrock(), `aws/${MODEL}`, AWS)
    upstream.queue(answer(200, JSON.stringify(messagesAnswer('signed')), { 'x-amzn-requestid': 'amz-1' }))
    const said = await client(running).messages.create(ask, { headers: { 'anthropic-beta': 'one-2026, two-2026' } })
    expect(said.content[0]).toMatchObject({ text: 'signed' })
    const [seen] = upstream.seen
    expect(seen!.url).toBe('/model/anthropic.claude-haiku-4-5-v1%3A0/invoke')
    expect(String(seen!.body)).toBe(
      '{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["one-2026","two-2026"],"max_tokens":50,"messages":[{"role":"user","content":"hi"}]}',
    )
    expect(signatureProblem(seen!, AWS)).toBeUndefined()
    expect(seen!.rawHeaders.join(' ')).not.toMatch(/sk-client-key|anthropic-(?:beta|version)/i)
    const [receipt] = await running.receipts()
    expect(receipt).toMatchObject({ final: { served_rung: 0, upstream_request_id: 'amz-1' } })
    expect(receipt!.request.body_sha256_in).not.toBe(receipt!.request.body_sha256_out)
  })

  it('is told apart by its verifier when a byte, a header or the key is another', async () => {
    const running = await start(bedrock(), `aws/${MODEL}`, AWS)
    upstream.always(answer(200, JSON.stringify(messagesAnswer('x'))))
    await client(running).messages.create(ask)
    const seen = upstream.seen[0]!
    expect(signatureProblem({ ...seen, body: Buffer.concat([seen.body, Buffer.from(' ')]) }, AWS)).toBe('signature')
    expect(signatureProblem({ ...seen, url: seen.url.replace('haiku', 'opus') }, AWS)).toBe('signature')
    expect(signatureProblem(seen, { ...AWS, AWS_SECRET_ACCESS_KEY: 'other' })).toBe('signature')
  })

  it('streams in binary events, which the official SDK reads as it reads any stream', async () => {
    const running = await start(bedrock(), `aws/${MODEL}`, AWS)
    const binary = Buffer.concat(messagesFrames(['Hel', 'lo, wörld']).map(frame => event(dataOf(frame))))
    upstream.queue(response => {
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
      // Cut where it hurts: inside preludes, headers and checksums.
      for (let at = 0; at < binary.length; at += 7) response.write(binary.subarray(at, at + 7))
      response.end()
    })
    const stream = client(running).messages.stream({ ...ask, stream: true } as typeof ask)
    expect(await stream.finalText()).toBe('Hello, wörld')
    expect(upstream.seen[0]!.url).toMatch(/\/invoke-with-response-stream$/)
    expect(JSON.parse(String(upstream.seen[0]!.body))).not.toHaveProperty('stream')
    expect((await running.receipts())[0]!.attempts[0]).toMatchObject({ verdict: 'pass', usage_source: 'provider' })
  })

  it.each([
    ['a checksum that is another', (bytes: Buffer) => bytes.fill(0, bytes.length - 4)],
    ['a stream that is cut', (bytes: Buffer) => bytes.subarray(0, bytes.length - 20)],
    ['a length beyond all measure', (bytes: Buffer) => bytes.fill(0xff, 0, 4)],
  ])('serves nothing after %s', async (_, spoil) => {
    const running = await start(bedrock(), `aws/${MODEL}`, AWS)
    const whole = Buffer.concat(messagesFrames(['Hello']).map(frame => event(dataOf(frame))))
    upstream.queue(response => {
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
      response.end(spoil(whole))
    })
    const got = await running.post('/v1/messages', { ...ask, stream: true })
    expect(got.status).toBe(502)
    expect((await running.receipts())[0]!.attempts[0]).toMatchObject({ error_class: 'bad_response' })
  })

  it('has its faults inside a stream read as faults', async () => {
    const running = await start(bedrock(), `aws/${MODEL}`, AWS)
    upstream.queue(response => {
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
      response.end(
        event('{"message":"slow down"}', { ':message-type': 'exception', ':exception-type': 'throttlingException' }),
      )
    })
    await running.post('/v1/messages', { ...ask, stream: true })
    expect((await running.receipts())[0]!.attempts[0]).toMatchObject({ error_class: 'rate_limited' })
  })

  it('gets keys of the container anew when they are refused as outdated, and the receipt and the client get none of them', async () => {
    let given = 0
    upstream.always((response, seen, request) => {
      const authorization = headersOf(seen).get('authorization') ?? ''
      const say = (status: number, body: object, headers = {}) =>
        answer(status, JSON.stringify(body), headers)(response, seen, request)
      if (seen.url === '/keys')
        return say(200, {
          AccessKeyId: `ASIA${++given}`,
          SecretAccessKey: 'held-secret',
          Token: 'held-session',
          Expiration: new Date(Date.now() + 3_600_000).toISOString(),
        })
      if (!authorization.includes('Credential=ASIA1/')) return say(200, messagesAnswer('by a role'))
      return say(
        403,
        { message: 'The security token included in the request is expired' },
        { 'x-amzn-errortype': 'ExpiredTokenException:http://internal.amazon.com/coral/com.amazon.coral.service/' },
      )
    })
    const running = await start(bedrock(), `aws/${MODEL}`, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${upstream.origin}/keys`,
    })
    const got = await running.post('/v1/messages', ask)
    expect([got.status, given]).toEqual([200, 2])
    const text = (await got.text()) + JSON.stringify([...got.headers]) + JSON.stringify(await running.receipts())
    expect(text).not.toMatch(/held-secret|held-session|ASIA/)
  })

  it('hands the call to the next rung where the source of its keys fails', async () => {
    upstream.always((response, seen, request) =>
      answer(seen.url === '/keys' ? 403 : 200, JSON.stringify(messagesAnswer('other')))(response, seen, request),
    )
    const other = `{ id = "other", dialect = "messages", base_url = "${upstream.origin}", auth = "none" }`
    const two = config(`${bedrock()}, ${other}`, `aws/${MODEL}`)
      .replace('price = [', 'price = [{ model = "other/m", input_per_mtok = 2, output_per_mtok = 9 }, ')
      .replace('ladder = [', 'ladder = ["other/m", ')
      .replace(`["other/m", "aws/${MODEL}"]`, `["aws/${MODEL}", "other/m"]`)
    running = await testRouter({
      config: two,
      env: { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${upstream.origin}/keys` },
    })
    const got = await running.post('/v1/messages', ask)
    expect(got.status).toBe(200)
    expect((await running.receipts())[0]).toMatchObject({ final: { served_rung: 1, failovers: 1 } })
  })

  it('gets the signature of the router alone, whatever the client has signed', async () => {
    const running = await start(bedrock(), `aws/${MODEL}`, AWS)
    upstream.always(answer(200, JSON.stringify(messagesAnswer('x'))))
    const own = {
      authorization: 'AWS4-HMAC-SHA256 Credential=AKIACLIENT/20260101/eu-west-1/bedrock/aws4_request',
      'x-amz-date': '20260101T000000Z',
      'x-amz-security-token': 'of-client',
    }
    expect((await running.post('/v1/messages', ask, own)).status).toBe(200)
    expect(signatureProblem(upstream.seen[0]!, AWS)).toBeUndefined()
    expect(upstream.seen[0]!.rawHeaders.join(' ')).not.toMatch(/AKIACLIENT|of-client|20260101/)
  })

  it('gets what the client has signed as it came, where the call is observed', async () => {
    running = await testRouter({ env: { ...AWS, ROUTER_UPSTREAM_MESSAGES: upstream.origin } })
    upstream.always(answer(200, JSON.stringify(messagesAnswer('x'))))
    const own = {
      authorization: 'AWS4-HMAC-SHA256 Credential=AKIACLIENT/20260101/eu-west-1/bedrock/aws4_request',
      'x-amz-date': '20260101T000000Z',
      'x-amz-security-token': 'of-client',
    }
    expect((await running.post('/v1/messages', ask, own)).status).toBe(200)
    const seen = headersOf(upstream.seen[0]!)
    for (const [name, value] of Object.entries(own)) expect(seen.get(name)).toBe(value)
  })

  it('is no rung for who has no credentials', async () => {
    const running = await start(bedrock(), `aws/${MODEL}`, {})
    expect((await running.post('/v1/messages', ask)).status).toBe(502)
    expect(upstream.seen).toHaveLength(0)
  })
})

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ACCOUNT = (tokenUri: string) =>
  JSON.stringify({
    type: 'service_account',
    client_email: 'router@project.example',
    private_key_id: 'k1',
    private_key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    token_uri: tokenUri,
  })

describe('deployments of Azure OpenAI', () => {
  const chat = { model: 'auto', messages: [{ role: 'user' as const, content: 'hi' }] }
  const said = {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-4.1',
    choices: [
      { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'from Azure', refusal: null } },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  }

  it.each([
    [
      'api_version = "2024-10-21"',
      '',
      '/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21',
      'api-key',
    ],
    [
      'api_version = "2024-10-21"',
      '/openai/',
      '/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21',
      'api-key',
    ],
    ['auth_header = "api-key"', '/openai/v1', '/openai/v1/chat/completions', 'api-key'],
    ['responses = false', '/openai/v1', '/openai/v1/chat/completions', 'authorization'],
  ])('are called as they are addressed with %s at %j', async (key, base, path, header) => {
    const azure = `{ id = "az", dialect = "chat", base_url = "${upstream.origin}${base}", auth = "env", api_key_env = "AZ_KEY", ${key} }`
    const model = 'model = [{ id = "az/gpt-4.1", upstream_model = "my gpt" }]\n'
    running = await testRouter({ config: model + config(azure, 'az/gpt-4.1'), env: { AZ_KEY: 'azure-key' } })
    upstream.always(answer(200, JSON.stringify(said)))
    const got = await running.post('/v1/chat/completions', chat, { authorization: 'Bearer sk-client' })
    expect([got.status, upstream.seen[0]!.url]).toEqual([200, path])
    const headers = headersOf(upstream.seen[0]!)
    expect(headers.get(header)).toBe(header === 'api-key' ? 'azure-key' : 'Bearer azure-key')
    expect([...headers.values()].join(' ')).not.toContain('sk-client')
    expect(JSON.parse(String(upstream.seen[0]!.body))).toMatchObject({ model: 'my gpt' })
  })

  it('are called with a token of Microsoft Entra in the place of a key', async () => {
    const azure = `{ id = "az", dialect = "chat", base_url = "${upstream.origin}", auth = "entra", api_version = "2024-10-21" }`
    running = await testRouter({
      config: config(azure, 'az/gpt-4.1'),
      env: { IDENTITY_ENDPOINT: `${upstream.origin}/msi`, IDENTITY_HEADER: 'msi-secret' },
    })
    upstream.queue(
      answer(
        200,
        JSON.stringify({ access_token: 'entra-token', expires_on: String(Math.floor(Date.now() / 1000) + 3600) }),
      ),
      answer(200, JSON.stringify(said)),
    )
    expect((await running.post('/v1/chat/completions', chat, { 'api-key': 'of-client' })).status).toBe(200)
    const headers = headersOf(upstream.seen[1]!)
    expect([headers.get('authorization'), headers.get('api-key')]).toEqual(['Bearer entra-token', undefined])
  })
})

describe('a host that wants tokens of a service account', () => {
  const vertex = () =>
    `{ id = "gcp", dialect = "messages", base_url = "${upstream.origin}", auth = "oauth", project = "p-1", region = "europe-west4", credentials_env = "GCP_JSON" }`
  const remote = (lives = 3600) => {
    let tokens = 0
    upstream.always((response, seen) => {
      const say = (status: number, body: object) => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(body))
      }
      if (seen.url === '/token') {
        const problem = assertionProblem(new URLSearchParams(String(seen.body)), `${upstream.origin}/token`)
        if (problem) return say(400, { error: 'invalid_grant', error_description: problem })
        return say(200, { access_token: `token-${++tokens}`, expires_in: lives, token_type: 'Bearer' })
      }
      say(200, messagesAnswer('by token'))
    })
  }
  const calls = () => upstream.seen.filter(({ url }) => url !== '/token')
  const exchanges = () => upstream.seen.filter(({ url }) => url === '/token')

  it('exchanges a signed assertion once for a crowd of calls', async () => {
    remote()
    const running = await start(vertex(), 'gcp/claude-haiku-4-5@20260101', {
      GCP_JSON: ACCOUNT(`${upstream.origin}/token`),
    })
    const all = await Promise.all(Array.from({ length: 50 }, () => running.post('/v1/messages', ask)))
    expect(all.map(({ status }) => status)).toEqual(Array(50).fill(200))
    expect(exchanges()).toHaveLength(1)
    expect(calls()[0]!.url).toBe(
      '/v1/projects/p-1/locations/europe-west4/publishers/anthropic/models/claude-haiku-4-5%4020260101:rawPredict',
    )
    expect(String(calls()[0]!.body)).toBe(
      '{"anthropic_version":"vertex-2023-10-16","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}',
    )
    expect(headersOf(calls()[0]!).get('authorization')).toBe('Bearer token-1')
  })

  it('exchanges anew before a token runs out', async () => {
    remote(30)
    const running = await start(vertex(), 'gcp/m', { GCP_JSON: ACCOUNT(`${upstream.origin}/token`) })
    for (let call = 0; call < 2; call++) expect((await running.post('/v1/messages', ask)).status).toBe(200)
    expect(calls().map(seen => headersOf(seen).get('authorization'))).toEqual(['Bearer token-1', 'Bearer token-2'])
  })

  it('gets a new token at once when the host refuses the one it has, one for all calls that were refused', async () => {
    remote()
    const running = await start(vertex(), 'gcp/m', { GCP_JSON: ACCOUNT(`${upstream.origin}/token`) })
    expect((await running.post('/v1/messages', ask)).status).toBe(200)
    // Revoked before its end.
    const revoked =
      (script: Script): Script =>
      (response, seen, request) => {
        const own = headersOf(seen).get('authorization') === 'Bearer token-1'
        return own ? answer(401, UNAUTHENTICATED)(response, seen, request) : script(response, seen, request)
      }
    upstream.wrap(revoked)
    const all = await Promise.all(Array.from({ length: 8 }, () => running.post('/v1/messages', ask)))
    expect(all.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(exchanges()).toHaveLength(2)
    expect((await running.post('/v1/messages', ask)).status).toBe(200)
    expect(exchanges()).toHaveLength(2)
  })

  it('asks once more and no oftener, and says the refusal of the host in the words of the client', async () => {
    remote()
    const running = await start(vertex(), 'gcp/m', { GCP_JSON: ACCOUNT(`${upstream.origin}/token`) })
    upstream.wrap(
      script => (response, seen, request) =>
        seen.url === '/token' ? script(response, seen, request) : answer(401, UNAUTHENTICATED)(response, seen, request),
    )
    const got = await running.post('/v1/messages', ask)
    expect([got.status, await got.json()]).toEqual([
      401,
      {
        type: 'error',
        error: { type: 'authentication_error', message: 'Request had invalid authentication credentials.' },
        request_id: expect.any(String),
      },
    ])
    expect([calls().length, exchanges().length]).toEqual([2, 2])
  })

  it('says that it got no token, and tells nobody the account', async () => {
    upstream.always(answer(403, '{"error":"nope"}'))
    const running = await start(vertex(), 'gcp/m', { GCP_JSON: ACCOUNT(`${upstream.origin}/token`) })
    const got = await running.post('/v1/messages', ask)
    expect(got.status).toBe(502)
    expect(await got.text()).not.toMatch(/PRIVATE KEY|project\.example/)
    expect(calls()).toHaveLength(0)
  })
})

/** Checks a signature from the published rules alone: canonical request, string to sign, derived key. */
function signatureProblem({ method, url, body, ...seen }: Seen, env: typeof AWS): string | undefined {
  const headers = headersOf({ method, url, body, ...seen })
  const given = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
    headers.get('authorization') ?? '',
  )
  if (!given) return 'authorization'
  const [, credential = '', names = '', signature] = given
  const [id, day = '', region = '', service = '', end] = credential.split('/')
  if (id !== env.AWS_ACCESS_KEY_ID || end !== 'aws4_request' || service !== 'bedrock') return 'scope'
  if (headers.get('x-amz-security-token') !== env.AWS_SESSION_TOKEN) return 'session token'
  if (!names.split(';').includes('host') || !names.split(';').includes('x-amz-date')) return 'signed headers'
  const date = headers.get('x-amz-date') ?? ''
  if (!/^\d{8}T\d{6}Z$/.test(date) || !date.startsWith(day)) return 'date'
  const hex = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex')
  const canonical = [
    method,
    url.split('/').map(encodeURIComponent).join('/'),
    '',
    ...names.split(';').map(name => `${name}:${(headers.get(name) ?? '').trim()}`),
    '',
    names,
    hex(body),
  ].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(mac, `AWS4${env.AWS_SECRET_ACCESS_KEY}`)
  const expected = mac(key, ['AWS4-HMAC-SHA256', date, scope, hex(canonical)].join('\n')).toString('hex')
  return expected === signature ? undefined : 'signature'
}

const UNAUTHENTICATED = JSON.stringify({
  error: { code: 401, message: 'Request had invalid authentication credentials.', status: 'UNAUTHENTICATED' },
})

function assertionProblem(form: URLSearchParams, audience: string): string | undefined {
  if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return 'grant_type'
  const [head = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.')
  const verifier = createVerify('RSA-SHA256').update(`${head}.${claims}`)
  if (!verifier.verify(createPublicKey(keys.privateKey), Buffer.from(signature, 'base64url'))) return 'signature'
  const said = JSON.parse(String(Buffer.from(claims, 'base64url'))) as Record<string, unknown>
  if (said.iss !== 'router@project.example' || said.aud !== audience) return 'issuer or audience'
  return Number(said.exp) - Number(said.iat) === 3600 ? undefined : 'life'
}

function headersOf({ rawHeaders }: Seen): Map<string, string> {
  const found = new Map<string, string>()
  for (let at = 0; at < rawHeaders.length; at += 2) found.set(rawHeaders[at]!.toLowerCase(), rawHeaders[at + 1]!)
  return found
}

const dataOf = (frame: string) => /^data: (.*)$/m.exec(frame)![1]!

/** One message of the binary format, written from its description. */
function event(json: string, headers?: Record<string, string>): Buffer {
  const named = headers ?? { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' }
  const head = Buffer.concat(
    Object.entries(named).map(([name, value]) => {
      const size = Buffer.alloc(2)
      size.writeUInt16BE(Buffer.byteLength(value))
      return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), size, Buffer.from(value)])
    }),
  )
  const payload = Buffer.from(
    headers ? json : JSON.stringify({ bytes: Buffer.from(json).toString('base64'), p: 'abcd' }),
  )
  const message = Buffer.alloc(16 + head.length + payload.length)
  message.writeUInt32BE(message.length, 0)
  message.writeUInt32BE(head.length, 4)
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8)
  head.copy(message, 12)
  payload.copy(message, 12 + head.length)
  message.writeUInt32BE(crc32(message.subarray(0, message.length - 4)), message.length - 4)
  return message
}
