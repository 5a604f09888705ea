import { nativeSha256 } from '../../router/host/native-sha256.ts'
import { storedRecords } from '../../router/traces/stored-records.ts'
import { verifyRecords } from '../../router/traces/verify.ts'
import { openDb } from '../../shared/host/open-libsql.ts'

/** Verifies the store named on the command line and prints what it took, as JSON. */
const db = await openDb(process.argv[2] ?? '', { readOnly: true })
const MIB = 1024 * 1024
let seen = 0
let early = 0
let peak = 0

async function* watched() {
  for await (const lot of storedRecords(db)) {
    seen += lot.length
    const { rss } = process.memoryUsage()
    peak = Math.max(peak, rss)
    if (seen <= 100_000) early = peak
    yield lot
  }
}

const started = performance.now()
const { valid, records } = await verifyRecords({ records: watched(), sha256: nativeSha256 })
const seconds = (performance.now() - started) / 1000
process.stdout.write(JSON.stringify({ valid, records, seconds, early: early / MIB, peak: peak / MIB }))
