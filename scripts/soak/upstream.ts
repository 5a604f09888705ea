import { createServer } from 'node:http'
import { messagesAnswer, messagesFrames } from '../../tests/upstream/answers.ts'

/** A provider on a bad day: of a hundred calls two are overloaded, two are cut, two are late, and the rest are answered. On a good day all are. */
const FIRST_GOOD = 6
const json = JSON.stringify(messagesAnswer('word '.repeat(120)))
const frames = messagesFrames(Array.from({ length: 30 }, (_, i) => `word ${i} `))
let calls = 0

const server = createServer((request, response) => {
  let body = ''
  request.on('data', (chunk: Buffer) => {
    body += String(chunk)
  })
  request.on('end', () => {
    const day = process.env.SOAK_GOOD_DAY === '1' ? FIRST_GOOD : ++calls % 100
    if (day < 2) {
      response.writeHead(529, { 'content-type': 'application/json' })
      return response.end('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
    }
    const stream = body.includes('"stream":true')
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' })
    if (day < 4) {
      response.write(stream ? (frames[0] ?? '') : json.slice(0, 100))
      return setTimeout(() => response.destroy(), 20)
    }
    return setTimeout(() => response.end(stream ? frames.join('') : json), day < FIRST_GOOD ? 800 : 2)
  })
})
server.keepAliveTimeout = 600_000
server.listen(Number(process.env.PORT), '127.0.0.1')
