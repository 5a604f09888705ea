import { liveDriver, patient, slowness } from './live-backend.ts'

/** Lives one sandbox after the other, with every step of its life, until it is killed. It removes first what the one before left. */
const isSnapshotted = process.argv[3] === 'snapshots'
const raw = await liveDriver(process.argv[2]!)
const driver = patient(raw)
await raw.reap()
process.stdout.write('begins\n')
for (;;) {
  const sandbox = await driver.start({ memoryMb: 64, cpus: 1, pids: 24, diskMb: 16 }, 30_000)
  const write = await sandbox.exec({
    argv: ['/bin/sh', '-c', 'echo kept > /tmp/a'],
    deadlineMs: 10_000,
    outputBytes: 100,
  })
  await write.exit
  if (isSnapshotted) {
    const ref = await sandbox.snapshot()
    await sandbox.stop()
    await (await driver.restore(ref, 30_000)).stop()
  } else await sandbox.stop()
  process.stdout.write(`${Math.round(performance.now() / slowness)}\n`)
}
