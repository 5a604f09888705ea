import { createServer } from 'node:http'
import { messagesFrames } from '../../../tests/upstream/answers.ts'

/** The far end: one long stream of frames of about 2 kB, no faster than it is read. */
const piece = 'word '.repeat(400)
const count = Math.ceil((Number(process.env.MEGABYTES) * 1_000_000) / piece.length)
const frames = messagesFrames(Array.from({ length: count }, () => piece)).map(text => Buffer.from(text))

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let at = 0
    const go = () => {
      while (at < frames.length) if (!response.write(frames[at++]!)) return
      response.end()
    }
    response.on('drain', go)
    go()
  })
})
server.keepAliveTimeout = 600_000
server.listen(Number(process.env.PORT), '127.0.0.1')
