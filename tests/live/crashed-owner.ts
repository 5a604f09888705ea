import { liveDriver, patient } from './live-backend.ts'

/** A process that starts a sandbox, says its id, and is killed under it. */
const driver = patient(await liveDriver(process.argv[2]!))
const sandbox = await driver.start({ memoryMb: 64, cpus: 1, pids: 24, diskMb: 16 }, 30_000)
process.stdout.write(`${sandbox.id}\n`)
setInterval(() => undefined, 60_000)
