import { writeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { createClient } from '@libsql/client/web'

/** Writes to a libSQL server as other programs do, with a stream for each write, and says on stdout when one is done. */
const [url = ''] = process.argv.slice(2)
const rows = Array.from({ length: 10 }, (_, n) => ({ sql: 'insert into t values (?, ?)', args: [n, 'x'.repeat(100)] }))

// With the test that started it.
process.stdin.resume().on('end', () => process.exit())

// The client leaves promises of a transaction that the server ended.
process.on('unhandledRejection', () => undefined)

for (let writer = 0; writer < 50; writer++) void write()

async function write(): Promise<void> {
  const client = createClient({
    url,
    fetch: (request: Request) => fetch(request, { signal: AbortSignal.timeout(250_000) }),
  })
  for (;;) {
    const isWritten = await client.batch(rows, 'write').then(
      () => true,
      () => false,
    )
    if (isWritten) writeSync(1, '.')
    else await wait(10)
  }
}
