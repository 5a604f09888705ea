import { moveToShard, undoShardMove } from '../../runtime/host/move-shard.ts'

/** A move in a process of its own, which kills or halts itself at a point: `move-child.ts TENANT SHARD POINT [SIGNAL]`. */
const [tenantId = '', to = '', point = '', signal = 'SIGKILL'] = process.argv.slice(2)
if (to === '--back') await undoShardMove(process.env, tenantId)
else {
  await moveToShard(process.env, {
    tenantId,
    to,
    reached(at) {
      process.stdout.write(`${at}\n`)
      if (at === point) process.kill(process.pid, signal)
    },
  })
}
