import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { programEnv } from '../../tests/program-env.ts'

it('writes what waits when the process exits, and leaves no listener behind for each log of it', () => {
  const program = `
import { stderrLines } from ${JSON.stringify(new URL('./stderr-lines.ts', import.meta.url).href)}
const logs = Array.from({ length: 20 }, () => stderrLines('json'))
for (const [n, log] of logs.entries()) log(\`early \${n}\`)
await new Promise(resolve => setTimeout(resolve, 20))
process.stdout.write(String(process.listenerCount('exit')))
logs[3]('late')
process.exit(0)`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', program], {
    env: programEnv,
    encoding: 'utf8',
  })
  expect(stdout).toBe('0')
  expect(stderr.trim().split('\n')).toEqual([...Array.from({ length: 20 }, (_, n) => `early ${n}`), 'late'])
})
