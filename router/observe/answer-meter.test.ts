import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { dialects } from '../../shared/dialects/dialects.ts'
import { answerMeter } from './answer-meter.ts'

const usage = 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'

async function readingOf(megabytes: number) {
  const headers: [string, string][] = [
    ['content-type', 'text/event-stream'],
    ['content-encoding', 'gzip'],
  ]
  const meter = answerMeter(dialects.chat, headers, true)
  const bytes = gzipSync(`: ping\n\n`.repeat((megabytes << 20) / 8) + usage)
  for (let at = 0; at < bytes.length; at += 65_536) meter.push(bytes.subarray(at, at + 65_536))
  return meter.reading()
}

it('reads what a compressed answer says', async () => {
  expect(await readingOf(1)).toMatchObject({ tokens: { uncached: 3, output: 2 } })
})

it('gives a compressed answer up that is longer than any answer', async () => {
  expect(await readingOf(80)).toBeUndefined()
})
