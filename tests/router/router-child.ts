import { type ChildProcess, spawn } from 'node:child_process'
import { programEnv } from '../program-env.ts'

/** A router in a process of its own, from when it says its address. `children` gets it at once, so that the test can end it. */
export async function routerChild(
  db: string,
  vars: Record<string, string>,
  children: ChildProcess[],
): Promise<{ child: ChildProcess; origin: string }> {
  const child = spawn(process.execPath, ['router/cli/main.ts', 'serve', '--bind', '127.0.0.1:0', '--db', db], {
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
