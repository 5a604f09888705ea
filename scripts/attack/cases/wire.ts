import type { Attack, Attempt } from '../attempt.ts'
import { answered } from '../far-end.ts'
import { raw, statuses } from '../raw.ts'

const BODY = '{"model":"gpt-4.1-mini","messages":[{"role":"user","content":"x"}]}'
const INNER = 'POST /v1/files/SMUGGLED HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n'
const head = (lines: string[], line = 'POST /v1/chat/completions HTTP/1.1') =>
  [line, 'host: 127.0.0.1', ...lines, '', ''].join('\r\n')
const chunked = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n0\r\n\r\n`

/** Each holds a second request that must not arrive as one. */
const SMUGGLED: Record<string, string> = {
  'two lengths':
    head([`content-length: ${BODY.length}`, `content-length: ${BODY.length + INNER.length}`]) + BODY + INNER,
  'a list of lengths': head([`content-length: ${BODY.length}, ${BODY.length + 9}`]) + BODY + INNER,
  'a length and chunks': head([`content-length: ${BODY.length}`, 'transfer-encoding: chunked']) + chunked(BODY) + INNER,
  'chunks and a length of all':
    head(['transfer-encoding: chunked', `content-length: ${BODY.length + INNER.length}`]) + chunked(BODY) + INNER,
  'an unknown encoding': head(['transfer-encoding: xchunked', `content-length: ${BODY.length}`]) + BODY + INNER,
  'chunked twice': head(['transfer-encoding: chunked', 'transfer-encoding: identity']) + chunked(BODY) + INNER,
  'chunked in capitals with a tab': head(['transfer-encoding:\tCHUNKED', `content-length: 4`]) + chunked(BODY) + INNER,
  'a space before the colon': head(['transfer-encoding : chunked', `content-length: ${BODY.length}`]) + BODY + INNER,
  'a folded header': head(['x-a: b', ' transfer-encoding: chunked', `content-length: ${BODY.length}`]) + BODY + INNER,
  'a bare line feed': `POST /v1/chat/completions HTTP/1.1\nhost: a\ncontent-length: ${BODY.length}\n\n${BODY}${INNER}`,
  'a negative length': head(['content-length: -1']) + BODY + INNER,
  'a length with a sign': head([`content-length: +${BODY.length}`]) + BODY + INNER,
  'a chunk size that overflows': `${head(['transfer-encoding: chunked'])}ffffffffffffffffff\r\n${BODY}\r\n0\r\n\r\n${INNER}`,
  'a chunk extension with a line end': `${head(['transfer-encoding: chunked'])}1;a=\n${BODY}\r\n0\r\n\r\n${INNER}`,
  'a GET with a body': head([`content-length: ${INNER.length}`], 'GET /v1/models HTTP/1.1') + INNER,
  'a GET with chunks': head(['transfer-encoding: chunked'], 'GET /v1/models HTTP/1.1') + chunked(INNER),
  'HTTP/1.0 with chunks':
    head(['transfer-encoding: chunked'], 'POST /v1/chat/completions HTTP/1.0') + chunked(BODY) + INNER,
  'an upgrade': head(['upgrade: h2c', 'connection: upgrade', `content-length: ${BODY.length}`]) + BODY,
  CONNECT: 'CONNECT 127.0.0.1:1 HTTP/1.1\r\nhost: a\r\n\r\n',
  'an absolute address':
    head([`content-length: ${BODY.length}`], 'POST http://127.0.0.1:1/v1/chat/completions HTTP/1.1') + BODY,
  'a line end in the path': 'GET /v1/models/%0d%0ahost:%20b HTTP/1.1\r\nhost: a\r\n\r\n',
  expect: head(['expect: 100-continue', `content-length: ${BODY.length}`]) + BODY + INNER,
  'a trailer': `${head(['transfer-encoding: chunked', 'trailer: content-length'])}${chunked(BODY).slice(0, -2)}content-length: 0\r\n\r\n${INNER}`,
}

const smuggling: Attempt[] = Object.entries(SMUGGLED).flatMap(([name, bytes]) =>
  (['open', 'keyed'] as const).map(which => ({
    name: `${name}, to the ${which} router`,
    async run({ remote, [which]: target, routerKey }) {
      const before = remote.heard.length
      const key = which === 'keyed' ? `host: a\r\nauthorization: Bearer ${routerKey}` : 'host: a'
      await raw(target.origin, bytes.replace(/host: (a|127\.0\.0\.1)/, key), 400)
      // Where it is a request of its own by the rules of HTTP, it arrives as one: with a key only if it has one.
      for (const text of remote.heard.slice(before)) {
        const at = text.indexOf('SMUGGLED HTTP/1.1')
        if (at < 0) continue
        if (!/^POST [^ ]*\/v1\/files\/SMUGGLED HTTP/.test(text))
          return 'a second request stands in the body of the first'
        if (which === 'keyed') return 'a request without a key reached the upstream'
      }
      return undefined
    },
  })),
)

const deep = (open: string, close: string, times: number) => `${open.repeat(times)}1${close.repeat(times)}`
const choices = Array.from({ length: 200_000 }, (_, index) => ({
  index,
  finish_reason: 'stop',
  message: { role: 'assistant', content: 'x' },
}))

const ANSWERS: Record<string, string | Buffer> = {
  'a second answer behind the first': `${answered('{}')}HTTP/1.1 200 OK\r\nx-router-mode: forged\r\ncontent-length: 2\r\n\r\n{}`,
  'headers of ours':
    'HTTP/1.1 200 OK\r\nx-router-trace-id: forged\r\nx-router-model: forged\r\ncontent-length: 2\r\n\r\n{}',
  'a line end in a header': 'HTTP/1.1 200 OK\r\nx-a: b\rset-cookie: c=d\r\ncontent-length: 2\r\n\r\n{}',
  'a header of a megabyte': `HTTP/1.1 200 OK\r\nx-a: ${'b'.repeat(1 << 20)}\r\ncontent-length: 2\r\n\r\n{}`,
  'ten thousand headers': `HTTP/1.1 200 OK\r\n${Array.from({ length: 10_000 }, (_, n) => `x-${n}: 1\r\n`).join('')}content-length: 2\r\n\r\n{}`,
  'two lengths': 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}',
  'no length and no end': 'HTTP/1.1 200 OK\r\n\r\n{',
  'a status that is none': 'HTTP/1.1 999 No\r\ncontent-length: 2\r\n\r\n{}',
  'a switch of protocols': 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello',
  'many interim answers': `${'HTTP/1.1 103 Early\r\nlink: a\r\n\r\n'.repeat(1000)}${answered('{}')}`,
  'broken chunks': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n',
  'a length that lies': 'HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{}',
  'JSON nested 100,000 deep': answered(deep('[', ']', 100_000)),
  'objects nested 100,000 deep': answered(deep('{"a":', '}', 100_000)),
  'two hundred thousand choices': answered(JSON.stringify({ id: 'c', object: 'chat.completion', choices, usage: {} })),
  'a stream of comments': `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${': ping\n\n'.repeat(20_000)}`,
  'usage that counts nothing': answered(
    '{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-5,"completion_tokens":"a"}}',
  ),
  'a list': answered('[]'),
  'half a character': answered(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]).toString('latin1')),
  'gzip that is none': 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}',
  nothing: '',
}

const upstreams: Attempt[] = Object.entries(ANSWERS).flatMap(([name, says]) =>
  ['gpt-4.1-mini', 'auto'].map(model => ({
    name: `${name}, to a call of ${model}`,
    async run({ open, remote }) {
      remote.say('/observed', says)
      remote.say('/router', says)
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'x' }] })
      const got = await raw(open.origin, head([`content-length: ${body.length}`, 'connection: close']) + body, 2500)
      const [top = ''] = got.split('\r\n\r\n')
      if (/forged|set-cookie/i.test(top)) return `passed on: ${top.slice(0, 200)}`
      return statuses(got).length > 1 ? 'more than one answer' : undefined
    },
  })),
)

const budgets: Attempt[] = [
  '"max_tokens":-1',
  '"max_tokens":0',
  '"max_tokens":-1e400',
  '"max_tokens":1,"max_tokens":100000',
  '"max_tokens":100000,"max_completion_tokens":1',
  '"max_tokens":null',
  '"max_tokens":"many"',
].map(limit => ({
  name: `a capped call with ${limit}`,
  async run({ open, remote }) {
    remote.say(
      '/router',
      answered(
        '{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":400,"total_tokens":410}}',
      ),
    )
    const body = `{"model":"capped",${limit},"messages":[{"role":"user","content":"x"}]}`
    let served = 0
    for (let n = 0; n < 5; n++) {
      const answer = await fetch(`${open.origin}/v1/chat/completions`, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      })
      await answer.body?.cancel()
      if (answer.ok) served++
    }
    // 400 tokens cost twice the cap.
    return served > 1 ? `served ${served} times` : undefined
  },
}))

export const wire: readonly Attack[] = [
  { name: 'smuggling', attempts: smuggling },
  { name: 'hostile upstreams', attempts: upstreams },
  { name: 'caps of the router', attempts: budgets },
]
