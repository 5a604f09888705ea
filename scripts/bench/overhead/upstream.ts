import { createServer } from 'node:http'
import { messagesAnswer, messagesFrames } from '../../../tests/upstream/answers.ts'

/** The far end: a JSON answer of about 1 kB, or a stream of 30 frames when the request asks for one. What it says is JSON, too. */
const json = Buffer.from(JSON.stringify(messagesAnswer(JSON.stringify('word '.repeat(120)))))
const words = Array.from({ length: 30 }, (_, i) => `${i === 0 ? '"' : ''}word ${i}${i === 29 ? '"' : ' '}`)
const frames = messagesFrames(words).join('')

const server = createServer((request, response) => {
  let stream = false
  request.on('data', (chunk: Buffer) => (stream ||= chunk.includes('"stream":true')))
  request.on('end', () => {
    if (stream) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(frames)
      return
    }
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': json.length,
      'request-id': 'req_1',
    })
    response.end(json)
  })
})
server.keepAliveTimeout = 600_000
server.listen(Number(process.env.PORT), '127.0.0.1')
