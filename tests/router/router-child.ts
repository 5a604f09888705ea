import { type ChildProcess, spawn } from 'node:child_process'
import { programEnv } from '../program-env.ts'

const LIMITED = 'ulimit -Sn "$0" && ulimit -Hn "$0" && exec "$@"'

/**
 * A router in a process of its own, from when it says its address. `children` gets it at once, so that the test can end it. `files`: as
 * many may be open in it.
 */
export async function routerChild(
  db: string,
  vars: Record<string, string>,
  children: ChildProcess[],
  files?: number,
): Promise<{ child: ChildProcess; origin: string }> {
  const command = [process.execPath, 'router/cli/main.ts', 'serve', '--bind', '127.0.0.1:0', '--db', db]
  const [program = '', ...args] = files === undefined ? command : ['sh', '-c', LIMITED, `${files}`, ...command]
  const child = spawn(program, args, {
    env: { ...programEnv, ...vars },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  let text = ''
  for await (const chunk of child.stdout!) {
    text += String(chunk)
    const origin = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0]
    if (origin) return { child, origin }
  }
  throw new Error(`the router ended: ${text}`)
}
