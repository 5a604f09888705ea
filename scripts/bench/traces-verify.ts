import { verifiedInThreads } from '../../router/host/verify-threads.ts'
import { verifyRecords, type WantedHashes } from '../../router/traces/verify.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openDb } from '../../shared/host/open-libsql.ts'

/** Verifies the store named on the command line and prints what it took, as JSON. */
const path = process.argv[2] ?? ''
const db = await openDb(path, { readOnly: true })
const MIB = 1024 * 1024
let seen = 0
let early = 0
let peak = 0
const records = verifiedInThreads(db, { address: path })

async function* watched(wanted: WantedHashes) {
  for await (const stretch of records(wanted)) {
    seen += stretch.records
    const { rss } = process.memoryUsage()
    peak = Math.max(peak, rss)
    if (seen <= 100_000) early = peak
    yield stretch
  }
}

const started = performance.now()
const report = await verifyRecords({ records: watched, sha256: nativeSha256 })
const seconds = (performance.now() - started) / 1000
const { valid } = report
process.stdout.write(JSON.stringify({ valid, records: report.records, seconds, early: early / MIB, peak: peak / MIB }))
