import { PassThrough, type Transform } from 'node:stream'
import { type Program, runProgram } from '../program.ts'

export interface Said {
  code: number
  out: string
  err: string
}

interface Given {
  env?: Record<string, string | undefined>
  input?: string
  /** Standard error as a terminal is. */
  stderr?: PassThrough
  /** A reader that takes its time. */
  stdout?: Transform
}

/** A command line as it runs in a shell, without a process of its own. */
export async function typed(program: Program, args: readonly string[], given: Given = {}): Promise<Said> {
  const [stdin, stdout, stderr] = [
    new PassThrough(),
    given.stdout ?? new PassThrough(),
    given.stderr ?? new PassThrough(),
  ]
  const read = (stream: Transform) => {
    let text = ''
    stream.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    return () => text
  }
  const [out, err] = [read(stdout), read(stderr)]
  stdin.end(given.input)
  // What a person keeps on this machine is not read.
  const env = { XDG_CONFIG_HOME: '/nonexistent', ...given.env }
  const code = await runProgram(program, args, { env, stdin, stdout, stderr })
  await new Promise(resolve => setImmediate(resolve))
  return { code, out: out(), err: err() }
}
