import { collect } from '../byte-queue.ts'
import type { ExecRequest, Exit, Sandbox } from '../driver.ts'

export interface Ran {
  exit: Exit
  stdout: string
  stderr: string
}

/** One shell line in a sandbox, to its end. */
export async function shell(
  sandbox: Sandbox,
  line: string,
  options: Partial<Omit<ExecRequest, 'argv'>> = {},
): Promise<Ran> {
  const exec = await sandbox.exec({ argv: ['sh', '-c', line], deadlineMs: 15_000, outputBytes: 65_536, ...options })
  const [stdout, stderr, exit] = await Promise.all([collect(exec.stdout), collect(exec.stderr), exec.exit])
  const decoder = new TextDecoder()
  return { exit, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) }
}
